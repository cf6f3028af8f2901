"""How both emulators are spoken to: one table of methods, served over sockets or called with none.

service.py    a service is a table of methods; a handler takes a protobuf and returns one, or raises `RpcError`
errors.py     the statuses a handler may answer with
inprocess.py  the table as a `grpc.aio.Channel`: the real client libraries on the engine, no socket, any event loop
server.py     the table on a TCP port, gRPC and HTTP/1.1 side by side as on Google's emulator
"""
