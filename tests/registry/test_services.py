import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection

from accounts.models import AuditEntry
from accounts.selectors import audit_list
from common.errors import Conflict, InvalidInput, NotFound
from integrations.artifacts.store import StoredArtifact
from registry import hooks, selectors, services
from registry.domain.version_lifecycle import Status
from registry.models import Alias, ModelVersion, RegisteredModel

Files = Callable[[str], StoredArtifact]
Register = Callable[..., ModelVersion]
UsageOf = Callable[[str, ModelVersion], None]
NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
WHO = {"now": NOW, "actor": "alice"}


@pytest.mark.django_db
class TestModels:
    def test_a_model_is_made_once(self) -> None:
        services.model_create(name="digits", description="ten of them", **WHO)
        with pytest.raises(Conflict, match="model 'digits' is there already"):
            services.model_create(name="digits", description="", **WHO)
        assert selectors.model_get(name="digits").description == "ten of them"
        assert [entry.action for entry in audit_list(target="models/digits")] == ["model.create"]

    @pytest.mark.parametrize(
        ("name", "description", "field"), [("a/b", "", "name"), ("digits", "x" * 10_001, "description")]
    )
    def test_a_wrong_model_is_not_made(self, name: str, description: str, field: str) -> None:
        with pytest.raises(InvalidInput) as refusal:
            services.model_create(name=name, description=description, **WHO)
        assert refusal.value.field == field
        assert not RegisteredModel.objects.exists()

    def test_deleting_takes_versions_and_aliases_along(self, register: Register) -> None:
        register()
        services.alias_set(model="digits", name="champion", number=1, **WHO)
        services.model_delete(name="digits", **WHO)
        assert [table.objects.count() for table in (RegisteredModel, ModelVersion, Alias)] == [0, 0, 0]
        assert audit_list(target="models/digits")[0].before == {"description": "", "versions": 1}

    def test_one_with_a_version_in_use_stays(self, register: Register, usage_of: UsageOf) -> None:
        register(content="one")
        usage_of("service default/digits (revision digits-00002)", register(content="two"))
        with pytest.raises(
            Conflict, match=r"is in use by service default/digits \(revision digits-00002\); take it out"
        ):
            services.model_delete(name="digits", **WHO)
        assert ModelVersion.objects.count() == 2

    def test_an_unknown_one_is_not_found(self) -> None:
        with pytest.raises(NotFound, match="there is no model 'digits'"):
            services.model_delete(name="digits", **WHO)


@pytest.mark.django_db
class TestVersions:
    def test_numbers_count_up_for_each_model(self, register: Register) -> None:
        made = [register(model, content) for model, content in [("a", "1"), ("a", "2"), ("b", "1"), ("a", "3")]]
        assert [(v.model.name, v.number) for v in made] == [("a", 1), ("a", 2), ("b", 1), ("a", 3)]

    def test_the_same_files_are_the_same_version(self, register: Register, artifact: Files) -> None:
        first = register(content="one")
        register(content="two")
        again, created = services.version_register(
            model="digits", artifact=artifact("one"), source_name="other.onnx", now=NOW + timedelta(days=1), actor="bob"
        )
        assert (again.pk, again.number, created) == (first.pk, 1, False)
        assert (again.created_by, again.source_name, again.created_at) == ("alice", "model.onnx", NOW)
        assert AuditEntry.objects.filter(action="model_version.register").count() == 2

    def test_a_new_one_waits_for_its_check(self, register: Register) -> None:
        version = register(status=Status.PENDING)
        assert (version.status, version.attempts, version.next_check_at) == ("PENDING", 0, NOW)

    def test_the_number_of_a_deleted_one_never_comes_back(self, register: Register) -> None:
        register(content="one")
        register(content="two")
        services.version_delete(model="digits", number=2, **WHO)
        assert register(content="three").number == 3
        assert register(content="two").number == 4

    def test_one_with_an_alias_stays(self, register: Register) -> None:
        register()
        services.alias_set(model="digits", name="champion", number=1, **WHO)
        with pytest.raises(Conflict, match="model 'digits' version 1 has the alias champion; move or delete it first"):
            services.version_delete(model="digits", number=1, **WHO)
        services.alias_delete(model="digits", name="champion", **WHO)
        services.version_delete(model="digits", number=1, **WHO)
        assert not ModelVersion.objects.exists()

    def test_one_in_use_stays_and_the_sentence_is_short(self, register: Register, usage_of: UsageOf) -> None:
        used = register()
        providers = [lambda ids, n=n: [hooks.Use(f"service default/s{n}")] for n in range(7)]
        for provider in providers:
            hooks.uses.register(provider)
        try:
            with pytest.raises(Conflict) as refusal:
                services.version_delete(model="digits", number=used.number, **WHO)
        finally:
            for provider in providers:
                hooks.uses.unregister(provider)
        assert refusal.value.message == (
            "model 'digits' version 1 is in use by service default/s0, service default/s1, service default/s2, "
            "service default/s3, service default/s4 and 2 more; take it out of use first"
        )
        assert ModelVersion.objects.filter(pk=used.pk).exists()

    def test_use_of_another_version_does_not_matter(self, register: Register, usage_of: UsageOf) -> None:
        register(content="one")
        usage_of("service default/digits", register(content="two"))
        services.version_delete(model="digits", number=1, **WHO)
        assert list(ModelVersion.objects.values_list("number", flat=True)) == [2]


@pytest.mark.django_db
class TestAliases:
    def test_an_alias_moves_and_the_log_tells_from_where(self, register: Register) -> None:
        register(content="one")
        register(content="two")
        assert services.alias_set(model="digits", name="champion", number=1, **WHO)[1]
        moved, created = services.alias_set(
            model="digits", name="champion", number=2, now=NOW + timedelta(hours=1), actor="bob"
        )
        assert (moved.version.number, moved.moved_at, created) == (2, NOW + timedelta(hours=1), False)
        newest = audit_list(target="models/digits/aliases/champion")[0]
        assert (newest.actor, newest.before, newest.after) == ("bob", {"version": 1}, {"version": 2})

    def test_setting_it_where_it_is_changes_nothing(self, register: Register) -> None:
        register()
        services.alias_set(model="digits", name="champion", number=1, **WHO)
        again, created = services.alias_set(
            model="digits", name="champion", number=1, now=NOW + timedelta(hours=1), actor="bob"
        )
        assert (again.moved_at, created) == (NOW, False)
        assert AuditEntry.objects.filter(action="alias.set").count() == 1

    @pytest.mark.parametrize("status", [Status.PENDING, Status.REJECTED])
    def test_only_a_ready_version_can_have_one(self, register: Register, status: Status) -> None:
        version = register(status=status)
        ModelVersion.objects.filter(pk=version.pk).update(reason="not an ONNX file.")
        with pytest.raises(Conflict) as refusal:
            services.alias_set(model="digits", name="champion", number=1, **WHO)
        assert refusal.value.message == (
            f"model 'digits' version 1 is {status.value} because not an ONNX file; "
            "an alias can point only at a READY version"
        )

    def test_a_wrong_name_is_refused(self, register: Register) -> None:
        register()
        with pytest.raises(InvalidInput, match="expected an alias"):
            services.alias_set(model="digits", name="2", number=1, **WHO)


@pytest.mark.django_db
class TestSelectors:
    @pytest.mark.parametrize(
        ("uri", "number"), [("models:/digits/1", 1), ("models:/digits/002", 2), ("models:/digits@champion", 2)]
    )
    def test_resolve(self, register: Register, uri: str, number: int) -> None:
        register(content="one")
        register(content="two")
        services.alias_set(model="digits", name="champion", number=2, **WHO)
        assert selectors.model_version_resolve(uri=uri).number == number

    @pytest.mark.parametrize(
        ("uri", "error", "told"),
        [
            ("models:/digits/7", NotFound, "model 'digits' has no version 7; its newest number is 1"),
            ("models:/other/1", NotFound, "there is no model 'other'"),
            ("models:/digits@best", NotFound, "model 'digits' has no alias 'best'; its aliases are a, b"),
            ("models:/other@best", NotFound, "there is no model 'other'"),
            ("models:/digits", InvalidInput, "write models:/NAME/VERSION or models:/NAME@ALIAS"),
            ("models:/digits/latest", InvalidInput, "is no model URI"),
            ("models:/digits/1/2", InvalidInput, "is no model URI"),
            ("models://digits/1", InvalidInput, "is no model URI"),
            ("s3://bucket/model", InvalidInput, "is no model URI"),
            ("models:/digits/99999999999", InvalidInput, "is no model URI"),
            ("models:/digits/1\n", InvalidInput, "is no model URI"),
        ],
    )
    def test_resolve_says_what_is_wrong(self, register: Register, uri: str, error: type[Exception], told: str) -> None:
        register()
        services.alias_set(model="digits", name="b", number=1, **WHO)
        services.alias_set(model="digits", name="a", number=1, **WHO)
        with pytest.raises(error, match=told):
            selectors.model_version_resolve(uri=uri)

    def test_a_resolved_version_needs_no_more_queries(
        self, register: Register, django_assert_num_queries: "Callable[[int], object]"
    ) -> None:
        register()
        services.alias_set(model="digits", name="champion", number=1, **WHO)
        with django_assert_num_queries(1):  # type: ignore[attr-defined]
            assert selectors.model_version_resolve(uri="models:/digits@champion").uri == "models:/digits/1"


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("distinct", [8, 3], ids=["eight files", "three files, each sent several times"])
def test_registering_at_the_same_time_leaves_no_gap_and_no_repeat(distinct: int, artifact: Files) -> None:
    together, results, faults = threading.Barrier(8), [], []

    def register(index: int) -> None:
        try:
            together.wait(timeout=10)
            version, created = services.version_register(
                model="digits", artifact=artifact(str(index % distinct)), source_name="model.onnx", **WHO
            )
            results.append((version.number, created))
        except Exception as error:
            faults.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=register, args=(index,)) for index in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert faults == []
    assert len(results) == 8
    assert sum(created for _, created in results) == distinct
    assert {number for number, _ in results} == set(range(1, distinct + 1))
    assert RegisteredModel.objects.get().latest_number == distinct
