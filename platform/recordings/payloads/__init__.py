"""What the taps of a service's replicas recorded: taken turn by turn, kept in recordings, read again by replays."""
