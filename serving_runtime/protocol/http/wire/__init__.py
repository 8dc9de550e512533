"""HTTP/1.1 connections: bytes to requests, responses to bytes."""
