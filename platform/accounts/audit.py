"""How the audit log is looked through: the filters of the API's list and of the page."""

from django.db.models import Q

from common.filters import Filter, Kind


class _ByUser(Filter):
    """Entries of a user, with whichever token; `fairlead` is the platform itself."""

    def condition(self, text: str) -> Q:
        """Return the condition for the user's name."""
        super().condition(text)
        return Q(actor=text) | Q(actor__startswith=f"{text} (token ")


class _Under(Filter):
    """Entries of an object and of what is under it."""

    def condition(self, text: str) -> Q:
        """Return the condition for the object's path."""
        super().condition(text)
        path = text.strip("/")
        return Q(target=path) | Q(target__startswith=f"{path}/")


FILTERS = (
    Filter("actor", "actor", "Who, as the log has it: `alice (token ci)`, or `fairlead` for the platform itself."),
    _ByUser("user", "actor", "Who, with whichever token: `alice`, or `fairlead` for the platform itself."),
    Filter("action", "action", "What, such as `policy.apply`."),
    Filter("target", "target", "The object's path in the API, such as `models/digits/versions/2`."),
    _Under("under", "target", "An object and what is under it, such as `models/digits`."),
    Filter("target_prefix", "target__startswith", "The beginning of that path, such as `models/digits/`."),
    Filter("request_id", "request_id", "The request that did it."),
    Filter("since", "at__gte", "Only entries from this moment on.", Kind.MOMENT),
    Filter("until", "at__lt", "Only entries before this moment.", Kind.MOMENT),
)
