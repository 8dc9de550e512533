"""PyTorch models: TorchScript and torch.export."""
