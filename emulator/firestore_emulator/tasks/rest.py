"""Cloud Tasks over HTTP and JSON: the `google.api.http` annotations of its protocol definition, as a table.

firebase-admin for Node calls the emulator at another path, without `/v2`, and leaves the task's URL empty: the task is
for the function that has the queue's name. `--functions HOST:PORT` says where functions are.
"""

from __future__ import annotations

from firestore_emulator.rpc.errors import invalid_argument
from firestore_emulator.rpc.service import Call, Message, Service, Unary
from firestore_emulator.wire.rest import Rest
from firestore_emulator.wire.rest_routes import Binding, Routes

_LOCATION = "projects/*/locations/*"
_QUEUE = _LOCATION + "/queues/*"
_TASK = _QUEUE + "/tasks/*"

BINDINGS = (
    Binding("PurgeQueue", "POST", "/v2/{name=" + _QUEUE + "}:purge", "*"),
    Binding("PauseQueue", "POST", "/v2/{name=" + _QUEUE + "}:pause", "*"),
    Binding("ResumeQueue", "POST", "/v2/{name=" + _QUEUE + "}:resume", "*"),
    Binding("RunTask", "POST", "/v2/{name=" + _TASK + "}:run", "*"),
    Binding("ListQueues", "GET", "/v2/{parent=" + _LOCATION + "}/queues"),
    Binding("CreateQueue", "POST", "/v2/{parent=" + _LOCATION + "}/queues", "queue"),
    Binding("ListTasks", "GET", "/v2/{parent=" + _QUEUE + "}/tasks"),
    Binding("CreateTask", "POST", "/v2/{parent=" + _QUEUE + "}/tasks", "*"),
    Binding("GetTask", "GET", "/v2/{name=" + _TASK + "}"),
    Binding("DeleteTask", "DELETE", "/v2/{name=" + _TASK + "}"),
    Binding("GetQueue", "GET", "/v2/{name=" + _QUEUE + "}"),
    Binding("UpdateQueue", "PATCH", "/v2/{queue.name=" + _QUEUE + "}", "queue"),
    Binding("DeleteQueue", "DELETE", "/v2/{name=" + _QUEUE + "}"),
)
"""The first that fits is meant: calls with a verb of their own before all others."""

FIREBASE_BINDINGS = (
    Binding("CreateTask", "POST", "/{parent=" + _QUEUE + "}/tasks", "*"),
    Binding("DeleteTask", "DELETE", "/{name=" + _TASK + "}"),
)


def rest_of(service: Service) -> Rest:
    return Rest(service, Routes(BINDINGS))


def firebase_rest_of(service: Service, functions: str | None) -> Rest:
    """`functions`: the HOST:PORT of the functions; None: a task without a URL is refused."""
    create = service.methods["CreateTask"]
    assert isinstance(create, Unary)

    async def create_task(request: Message, call: Call) -> Message:
        if not request.task.http_request.url:
            request.task.http_request.url = _function_url(request.parent, functions)
        answer: Message = await create.handler(request, call)
        return answer

    methods = {**service.methods, "CreateTask": Unary(create.request, create_task)}
    return Rest(Service(service.name, methods), Routes(FIREBASE_BINDINGS))


def _function_url(queue: str, functions: str | None) -> str:
    """As the functions emulator serves a function of this name."""
    if functions is None:
        raise invalid_argument(
            "The task has no URL. Start the emulator with --functions HOST:PORT, or give the task a `uri`."
        )
    _, project, _, location, _, name = queue.split("/")
    return f"http://{functions}/{project}/{location}/{name}"
