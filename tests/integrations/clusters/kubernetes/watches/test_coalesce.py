from integrations.clusters.kubernetes.watches import Coalescer

DIGITS, LETTERS = ("default", "digits"), ("default", "letters")


def test_the_first_change_is_due_at_once_and_those_that_follow_come_together() -> None:
    due = Coalescer(every_s=1.0)
    due.add([DIGITS])
    assert due.due(10.0) == [DIGITS]
    for _ in range(50):
        due.add([DIGITS])
    assert (due.due(10.5), due.next_s(10.5)) == ([], 0.5)
    assert due.due(11.0) == [DIGITS]
    assert (due.due(11.5), due.next_s(11.5)) == ([], None)


def test_one_service_does_not_wait_for_another() -> None:
    due = Coalescer(every_s=1.0)
    due.add([DIGITS])
    due.due(10.0)
    due.add([DIGITS, LETTERS])
    assert (due.next_s(10.5), due.due(10.5)) == (0.0, [LETTERS])


def test_a_service_that_rested_is_due_at_once_again() -> None:
    due = Coalescer(every_s=1.0)
    due.add([DIGITS])
    due.due(10.0)
    due.add([DIGITS])
    assert due.due(20.0) == [DIGITS]
