"""OpenTelemetry's protocol."""
