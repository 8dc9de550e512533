"""Rollouts: started, forecast, approved, rolled back."""
