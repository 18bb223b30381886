"""Plausible bugs, each put on one public function of pi_course.schema."""

from __future__ import annotations

import json
from functools import wraps


def properties_required(check_schema):
    """Read schema["properties"] as if every object had it."""

    @wraps(check_schema)
    def faulty(schema):
        from pi_course.errors import CourseError

        check_schema(schema)
        if "properties" not in schema:
            raise CourseError("INVALID_SCHEMA", "/properties: is missing")

    return faulty


def unknown_keywords_skipped(check_schema):
    """Look at the keywords one knows and take the others for comments."""
    foreign = {"$ref", "$defs", "oneOf", "pattern", "default"}

    @wraps(check_schema)
    def faulty(schema):
        check_schema(
            _schemas(schema, lambda one: {k: v for k, v in one.items() if k not in foreign})
        )

    return faulty


def limits_of_other_types_allowed(check_schema):
    """Accept every keyword of the subset with every type."""

    @wraps(check_schema)
    def faulty(schema):
        def with_its_own(one):
            if one.get("type") == "string":
                return {k: v for k, v in one.items() if k not in ("minimum", "maximum")}
            return {k: v for k, v in one.items() if k not in ("minLength", "maxLength")}

        check_schema(_schemas(schema, with_its_own))

    return faulty


def looks_five_levels_deep(check_schema):
    """Check the upper levels and believe the rest."""

    @wraps(check_schema)
    def faulty(schema):
        check_schema(_schemas(schema, lambda one: one, depth=5))

    return faulty


def true_is_a_limit(check_schema):
    """Test a limit with isinstance(value, int), which True passes."""

    @wraps(check_schema)
    def faulty(schema):
        def numbers(one):
            return {k: int(v) if k == "minLength" and v is True else v for k, v in one.items()}

        check_schema(_schemas(schema, numbers))

    return faulty


def required_names_unchecked(check_schema):
    """Let a schema require a property that it does not have."""

    @wraps(check_schema)
    def faulty(schema):
        check_schema(_schemas(schema, lambda one: {k: one[k] for k in one if k != "required"}))

    return faulty


def arguments_handed_back(validate_args):
    """Return the very arguments that were checked."""

    @wraps(validate_args)
    def faulty(schema, args):
        validate_args(schema, args)
        return args

    return faulty


def first_error_only(validate_args):
    """Raise at the first error, so that a model learns of one mistake a turn."""

    @wraps(validate_args)
    def faulty(schema, args):
        from pi_course.errors import CourseError

        try:
            return validate_args(schema, args)
        except CourseError as error:
            first = error.message.partition("\n")[0]
            raise CourseError(error.code, first) from None

    return faulty


def unknown_arguments_dropped(validate_args):
    """Leave out what the schema does not name instead of refusing it."""

    @wraps(validate_args)
    def faulty(schema, args):
        if isinstance(schema, dict) and isinstance(args, dict):
            named = schema.get("properties", {})
            if not schema.get("additionalProperties"):
                args = {name: value for name, value in args.items() if name in named}
        return validate_args(schema, args)

    return faulty


def true_becomes_one(validate_args):
    """Make an integer of what is nearly one: True and 1.0."""

    @wraps(validate_args)
    def faulty(schema, args):
        if isinstance(schema, dict) and isinstance(args, dict):
            args = dict(args)
            for name, accepts in schema.get("properties", {}).items():
                if accepts.get("type") == "integer" and isinstance(args.get(name), bool | float):
                    args[name] = int(args[name])
        return validate_args(schema, args)

    return faulty


def long_values_cut(validate_args):
    """Cut a list that is too long down to its limit."""

    @wraps(validate_args)
    def faulty(schema, args):
        if isinstance(schema, dict) and isinstance(args, dict):
            args = dict(args)
            for name, accepts in schema.get("properties", {}).items():
                if "maxItems" in accepts and isinstance(args.get(name), list):
                    args[name] = args[name][: accepts["maxItems"]]
        return validate_args(schema, args)

    return faulty


def lengths_in_bytes(validate_args):
    """Count the bytes of a text, not its characters."""

    @wraps(validate_args)
    def faulty(schema, args):
        from pi_course.errors import CourseError

        checked = validate_args(schema, args)
        for name, accepts in schema.get("properties", {}).items():
            value = checked.get(name)
            if isinstance(value, str) and len(value.encode()) > accepts.get("maxLength", 10**9):
                raise CourseError("INVALID_ARGUMENTS", f"/{name}: too long")
        return checked

    return faulty


def underscores_skipped(validate_args):
    """Throw away names with two underscores, "for safety"."""

    @wraps(validate_args)
    def faulty(schema, args):
        if isinstance(args, dict):
            args = {k: v for k, v in args.items() if not str(k).startswith("__")}
        return validate_args(schema, args)

    return faulty


def arguments_echoed(validate_args):
    """Show in the error what was given."""

    @wraps(validate_args)
    def faulty(schema, args):
        from pi_course.errors import CourseError

        try:
            return validate_args(schema, args)
        except CourseError as error:
            given = json.dumps(args, default=repr) if "again" not in args else "a circle"
            raise CourseError(error.code, f"{error.message} in {given}") from None

    return faulty


def bad_schema_lets_through(validate_args):
    """Take a schema that cannot be used for one that asks nothing."""

    @wraps(validate_args)
    def faulty(schema, args):
        from pi_course.errors import CourseError
        from pi_course.values import deep_freeze

        try:
            return validate_args(schema, args)
        except CourseError as error:
            if error.code == "INVALID_SCHEMA":
                return deep_freeze(args)
            raise

    return faulty


def _schemas(schema, change, depth=100):
    """A copy of `schema`, cut below `depth` levels, with `change` made to every schema in it."""
    if not isinstance(schema, dict):
        return schema
    changed = change(dict(schema))
    if depth == 1:
        return {k: v for k, v in changed.items() if k not in ("properties", "items", "required")}
    if isinstance(changed.get("properties"), dict):
        inner = changed["properties"].items()
        changed["properties"] = {k: _schemas(v, change, depth - 1) for k, v in inner}
    if isinstance(changed.get("items"), dict):
        changed["items"] = _schemas(changed["items"], change, depth - 1)
    return changed
