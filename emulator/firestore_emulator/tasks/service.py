"""`google.cloud.tasks.v2.CloudTasks` as a table of methods."""

from __future__ import annotations

from collections.abc import Callable

from firestore_emulator.rpc.errors import RpcError, unimplemented
from firestore_emulator.rpc.service import Call, Message, Service, Unary
from firestore_emulator.tasks import protos
from firestore_emulator.tasks.dispatcher import Dispatcher
from firestore_emulator.tasks.engine import Engine

NAME = "google.cloud.tasks.v2.CloudTasks"

_NOT_SUPPORTED = {
    "BatchCreateTasks": protos.BatchCreateTasksRequest,
    "BatchDeleteTasks": protos.BatchDeleteTasksRequest,
    "UpdateCmekConfig": protos.UpdateCmekConfigRequest,
    "GetCmekConfig": protos.GetCmekConfigRequest,
    "GetIamPolicy": protos.GetIamPolicyRequest,
    "SetIamPolicy": protos.SetIamPolicyRequest,
    "TestIamPermissions": protos.TestIamPermissionsRequest,
}


def service_of(engine: Engine, dispatcher: Dispatcher) -> Service:
    def answered(operation: Callable[[Message], Message], request_class: Message) -> Unary:
        async def handler(request: Message, call: Call) -> Message:
            try:
                response = operation(request)
            except RpcError:
                await engine.settled()  # a refusal tells of the state as well: of a name that is taken, say
                raise
            await engine.settled()
            return response

        return Unary(request_class, handler)

    def run_task(request: Message) -> Message:
        claim, task = engine.run_task(request)
        dispatcher.launch(claim)
        return task

    methods = {
        "CreateQueue": answered(engine.queue_calls.create, protos.CreateQueueRequest),
        "GetQueue": answered(engine.queue_calls.get, protos.GetQueueRequest),
        "ListQueues": answered(engine.queue_calls.list, protos.ListQueuesRequest),
        "UpdateQueue": answered(engine.queue_calls.update, protos.UpdateQueueRequest),
        "DeleteQueue": answered(engine.queue_calls.delete, protos.DeleteQueueRequest),
        "PurgeQueue": answered(engine.queue_calls.purge, protos.PurgeQueueRequest),
        "PauseQueue": answered(engine.queue_calls.pause, protos.PauseQueueRequest),
        "ResumeQueue": answered(engine.queue_calls.resume, protos.ResumeQueueRequest),
        "CreateTask": answered(engine.create_task, protos.CreateTaskRequest),
        "GetTask": answered(engine.get_task, protos.GetTaskRequest),
        "ListTasks": answered(engine.list_tasks, protos.ListTasksRequest),
        "DeleteTask": answered(engine.delete_task, protos.DeleteTaskRequest),
        "RunTask": answered(run_task, protos.RunTaskRequest),
    }
    methods.update({name: Unary(request, _refusal(name)) for name, request in _NOT_SUPPORTED.items()})
    return Service(NAME, methods)


def _refusal(name: str) -> Callable[[Message, Call], Message]:
    async def handler(request: Message, call: Call) -> Message:
        raise unimplemented(f"{name} is not supported by this emulator.")

    return handler
