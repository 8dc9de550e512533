"""`fairlead teams` and `fairlead members`: role-based access to namespaces and models."""

import argparse

from fairlead_cli.client import path
from fairlead_cli.context import Call
from fairlead_cli.output import render

_COLUMNS: render.Columns = {"name": "name", "created": "created_at"}
_MEMBERS: render.Columns = {"user": "user", "role": "role"}
_OWNED: render.Columns = {"owns": "kind", "name": "name"}
_DEMAND: render.Columns = {
    "of": "of",
    "policies": lambda row: ", ".join(row["policies"]) or "any",
    "approvals": "approvals",
    "signed in": "signed_in",
    "digests": "digests",
}
_QUOTA: render.Columns = {
    "versions": "used_versions",
    "most versions": "max_versions",
    "bytes": "used_bytes",
    "most bytes": "max_bytes",
    "requests a second": "requests_per_second",
    "rows a minute": "rows_per_minute",
}
_PLACES = {"namespace": "namespaces", "model": "models"}


def team_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("team", metavar="TEAM", help="name of the team")


def list_teams(call: Call) -> None:
    """Lists your teams; for administrators of the installation, all teams."""
    call.show_list(call.client.all("teams"), _COLUMNS)


def show_team(call: Call) -> None:
    """Shows a team with its members, namespaces and models."""
    address = path("teams", call.options.team)
    team = call.client.get(address)
    members, owned = call.client.all(f"{address}/members"), call.client.all(f"{address}/owned")
    if call.as_json:
        return call.show({**team, "members": members, "owned": owned}, {})
    call.show(team, _COLUMNS)
    for rows, columns in ((members, _MEMBERS), (owned, _OWNED)):
        print()
        call.show_list(rows, columns)
    return None


def create_team(call: Call) -> None:
    """Creates a team without members."""
    call.show(call.client.post("teams", {"name": call.options.team}), _COLUMNS)


def delete_team(call: Call) -> None:
    """Deletes a team that owns nothing."""
    call.client.delete(path("teams", call.options.team))
    call.done(f"deleted team {call.options.team}", deleted=call.options.team)


def quota_arguments(parser: argparse.ArgumentParser) -> None:
    team_argument(parser)
    parser.add_argument(
        "--max-versions", type=_limit, metavar="NUMBER", help="most versions of the team's models; `none` for no limit"
    )
    parser.add_argument(
        "--max-bytes", type=_limit, metavar="BYTES", help="most bytes of these versions together; `none` for no limit"
    )
    parser.add_argument(
        "--requests-per-second",
        type=_limit,
        metavar="NUMBER",
        help="most requests of the team's keys to all services together; `none` for no limit",
    )
    parser.add_argument(
        "--rows-per-minute", type=_limit, metavar="NUMBER", help="most rows of these requests; `none` for no limit"
    )


def quota(call: Call) -> None:
    """Shows the quota of a team and its usage; with options sets it, as administrators of the installation may."""
    options, address = call.options, path("teams", call.options.team, "quota")
    names = ("max_versions", "max_bytes", "requests_per_second", "rows_per_minute")
    asked = {name: getattr(options, name) for name in names}
    found = call.client.get(address)
    if any(value is not None for value in asked.values()):
        wanted = {
            name: found[name] if value is None else _or_none(value)
            for name, value in asked.items()
            if value is not None or name in found
        }
        found = call.client.put(address, wanted)
    call.show(found, _QUOTA)


def _limit(text: str) -> int:
    """Return a limit from the command line, -1 for `none`."""
    if text == "none":
        return -1
    if not (text.isascii() and text.isdecimal()):
        raise argparse.ArgumentTypeError(f"{text!r} is no limit; expected a whole number, or none")
    return int(text)


def _or_none(limit: int) -> int | None:
    return None if limit < 0 else limit


def owned_arguments(parser: argparse.ArgumentParser) -> None:
    team_argument(parser)
    parser.add_argument("kind", choices=tuple(_PLACES), help="kind of object")
    parser.add_argument("name", metavar="NAME", help="name of the namespace or model; it need not exist yet")


def give(call: Call) -> None:
    """Assigns a namespace or a model to a team, in place of its present owner."""
    options = call.options
    call.show(call.client.put(path("teams", options.team, _PLACES[options.kind], options.name), {}), _OWNED)


def take(call: Call) -> None:
    """Removes a namespace or a model from a team; the team `default` then owns it."""
    options = call.options
    call.client.delete(path("teams", options.team, _PLACES[options.kind], options.name))
    call.done(f"took {options.kind} {options.name} from team {options.team}", taken=options.name, kind=options.kind)


def demand_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("kind", choices=("team", "namespace"), help="whose demand it is")
    parser.add_argument("name", metavar="NAME", help="name of the team or the namespace")


def set_demand_arguments(parser: argparse.ArgumentParser) -> None:
    demand_arguments(parser)
    parser.add_argument(
        "--policy", action="append", default=[], metavar="POLICY", help="policy that services may use; repeatable"
    )
    parser.add_argument(
        "--approvals", type=int, default=0, metavar="N", help="approvals that the policy of a rollout must ask for"
    )
    parser.add_argument(
        "--signed-in", action="store_true", help="accepts approvals only of people who signed in themselves"
    )
    parser.add_argument("--digests", action="store_true", help="takes service files that name images by digest only")


def show_demand(call: Call) -> None:
    """Shows what a team or a namespace demands of rollouts and approvals."""
    call.show(call.client.get(path(f"{call.options.kind}s", call.options.name, "demand")), _DEMAND)


def set_demand(call: Call) -> None:
    """Sets what a team or a namespace demands of rollouts and approvals; without options, lifts it."""
    options = call.options
    demand = {
        "policies": options.policy,
        "approvals": options.approvals,
        "signed_in": options.signed_in,
        "digests": options.digests,
    }
    call.show(call.client.put(path(f"{options.kind}s", options.name, "demand"), demand), _DEMAND)


def list_members(call: Call) -> None:
    """Lists the members of a team."""
    call.show_list(call.client.all(path("teams", call.options.team, "members")), _MEMBERS)


def member_arguments(parser: argparse.ArgumentParser) -> None:
    team_argument(parser)
    parser.add_argument("user", metavar="USER", help="name of the user")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    member_arguments(parser)
    parser.add_argument(
        "--role",
        choices=("viewer", "deployer", "admin"),
        required=True,
        help="role in the team; each includes the ones before",
    )


def add_member(call: Call) -> None:
    """Assigns a user a role in a team, in place of any earlier role; creates an unknown user."""
    options = call.options
    call.show(call.client.put(path("teams", options.team, "members", options.user), {"role": options.role}), _MEMBERS)


def remove_member(call: Call) -> None:
    """Removes a user from a team."""
    options = call.options
    call.client.delete(path("teams", options.team, "members", options.user))
    call.done(f"removed {options.user} from team {options.team}", removed=options.user, team=options.team)
