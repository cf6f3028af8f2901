"""The raw protobuf classes of the API. Wrapped ones (proto-plus) cost several times the work itself."""

from __future__ import annotations

from google.cloud.tasks_v2 import types
from google.iam.v1 import iam_policy_pb2
from google.protobuf import empty_pb2

Queue = types.Queue.pb()
RetryConfig = types.RetryConfig.pb()
Task = types.Task.pb()
HttpRequest = types.HttpRequest.pb()
Attempt = types.Attempt.pb()

CreateQueueRequest = types.CreateQueueRequest.pb()
GetQueueRequest = types.GetQueueRequest.pb()
ListQueuesRequest = types.ListQueuesRequest.pb()
ListQueuesResponse = types.ListQueuesResponse.pb()
UpdateQueueRequest = types.UpdateQueueRequest.pb()
DeleteQueueRequest = types.DeleteQueueRequest.pb()
PurgeQueueRequest = types.PurgeQueueRequest.pb()
PauseQueueRequest = types.PauseQueueRequest.pb()
ResumeQueueRequest = types.ResumeQueueRequest.pb()

CreateTaskRequest = types.CreateTaskRequest.pb()
GetTaskRequest = types.GetTaskRequest.pb()
ListTasksRequest = types.ListTasksRequest.pb()
ListTasksResponse = types.ListTasksResponse.pb()
DeleteTaskRequest = types.DeleteTaskRequest.pb()
RunTaskRequest = types.RunTaskRequest.pb()

BatchCreateTasksRequest = types.BatchCreateTasksRequest.pb()
BatchDeleteTasksRequest = types.BatchDeleteTasksRequest.pb()
UpdateCmekConfigRequest = types.UpdateCmekConfigRequest.pb()
GetCmekConfigRequest = types.GetCmekConfigRequest.pb()
GetIamPolicyRequest = iam_policy_pb2.GetIamPolicyRequest
SetIamPolicyRequest = iam_policy_pb2.SetIamPolicyRequest
TestIamPermissionsRequest = iam_policy_pb2.TestIamPermissionsRequest

Empty = empty_pb2.Empty

RUNNING = Queue.State.Value("RUNNING")
PAUSED = Queue.State.Value("PAUSED")
BASIC = Task.View.Value("BASIC")
FULL = Task.View.Value("FULL")
METHODS = {1: "POST", 2: "GET", 3: "HEAD", 4: "PUT", 5: "DELETE", 6: "PATCH", 7: "OPTIONS"}
"""HttpMethod by its number."""
POST = 1
