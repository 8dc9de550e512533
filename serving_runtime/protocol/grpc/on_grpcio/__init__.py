"""grpcio transport: the services on its asyncio server; only this folder imports grpcio."""
