"""Cloud Tasks (`google.cloud.tasks.v2`) on one machine: queues, schedules, retries, HTTP dispatch, in SQLite.

Theory of operation
===================

Who is authoritative. The database. What is in memory is either a copy of it (the queues and their buckets,
written through) or says only what runs in this process (how many attempts each queue has in flight). Every
operation runs to its end on the event loop, and no answer leaves before what it tells of is in the file
(`Engine.settled`).

The life of a task. One row, and a table of four transitions:

    created --claim--> running --2xx recorded----------------> gone (a named one leaves a tombstone)
       ^                  |----failure recorded, retry left--> waiting, at `end of the attempt + backoff`
       '------------------'----failure recorded, none left---> gone
    any state --DeleteTask, PurgeQueue, 31 days old----------> gone

A claim counts the attempt and spends a token of the queue's bucket, and is in the file before the request is
sent. The row is deleted only when a 2xx was recorded. An outcome that arrives for a row that is gone changes
nothing.

What each crash leaves behind:

- before the claim is in the file: the task waits; nothing was sent.
- between the claim and the answer, or between the answer and its record: the row says `running`. The next
  start makes it waiting again at its old schedule time, so it is sent again: at least once, as in production.
  The attempt stays counted, and so does the token: a crash can make a queue slower, never faster than its
  rate. Such a task is sent again even when its attempts are used up, since only a recorded failure gives a
  task up.
- after the record: the task is gone, or waits for its retry, with its counters.

Where this differs from production, on purpose:

- The queue need not be warm: dispatch starts at the full rate, with a full bucket. Production ramps up
  slowly.
- 429 and 503 slow the whole queue by a rule of our own (`pacing.py`); production does not publish its rule.
- `max_burst_size` is max(10, rate / 5): it agrees with the values production is seen to pick (1/s: 10, 500/s:
  100).
- Tokens are attached to plain http:// targets as well; production wants https://. OIDC tokens are signed by a
  local key (`oidc.py`); OAuth tokens are opaque strings that no Google API accepts. Service accounts need not
  exist.
- Redirects are not followed (production says it may): a 3xx is a failed attempt.
- A deleted queue's name can be used again at once, unless `queue_tombstone` is set (production: about 3
  days).
- Generated names leave no tombstone: GetTask after completion says "not found", not "existed recently".
- App Engine tasks and routing, `Queue.http_target`, list filters, batches, CMEK and IAM are refused by name
  with UNIMPLEMENTED. `stackdriver_logging_config` is stored and returned; there are no such logs.

Files: `names` and `rules` say what may be asked; `pacing` and `retry` decide, purely; `queues`, `tasks` and
`attempts` keep the state and `engine` joins them; `calls`, `oidc` and `sender` make the request; `dispatcher`
is the loop; `service` and `http` are the ways in; `emulator` puts it together.
"""
