"""PyTorch backend: TorchScript and torch.export."""
