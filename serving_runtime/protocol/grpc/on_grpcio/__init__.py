"""The services on grpcio's asyncio server, which only this folder imports."""
