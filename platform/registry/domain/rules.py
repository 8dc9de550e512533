"""Rules of a model that only admins of its team change: approval of versions, and protected aliases. Pure.

They belong to the name. A model that is deleted leaves them, and the next one of that name begins with them:

    rules of the model ── deletion by an admin ──► kept rules ── a model of that name ──► rules of the model
                                                       └── removal by an admin ──► none

`compatible_with` is no such rule: every deployer changes it, and it names a version that goes with the model.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of one model; `protected_aliases` are sorted."""

    requires_approval: bool = False
    protected_aliases: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Return whether there are any."""
        return self.requires_approval or bool(self.protected_aliases)

    def __str__(self) -> str:
        """Return them as the predicate of a sentence about the model."""
        aliases = ", ".join(self.protected_aliases)
        protected = f"protects the {'alias' if len(self.protected_aliases) == 1 else 'aliases'} {aliases}"
        approval = "requires approval of its versions"
        return " and ".join([approval] * self.requires_approval + [protected] * bool(self.protected_aliases))

    def as_json(self) -> dict[str, object]:
        """Return them as the audit log has them."""
        return {"requires_approval": self.requires_approval, "protected_aliases": list(self.protected_aliases)}
