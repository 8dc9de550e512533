"""gRPC: the V2 service on grpcio's asyncio server, which only this folder imports."""
