"""The pages around all others: home, navigation, the page of an unknown address."""
