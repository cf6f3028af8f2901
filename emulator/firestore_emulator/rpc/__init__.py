"""How both emulators are spoken to: one table of methods, served over sockets or called with none.

service.py    a service is a table of methods; a handler takes a protobuf and returns one, or raises `RpcError`
errors.py     the statuses a handler may answer with
inprocess.py  the table as a `grpc.aio.Channel`: the real client libraries on the engine, no socket, any event loop
frames.py     HTTP/2 as bytes: frames and header blocks
http2.py      what they mean: one client's connection, calls in and answers out
server.py     the table on a TCP port, gRPC and HTTP/1.1 side by side as on Google's emulator
"""
