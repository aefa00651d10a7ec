"""Write kerf policies in Python: derive from SelectionPolicy, PricingPolicy or BootstrapPolicy and export the class.

    Lifecycle, InstanceSelection = export(MyPolicy)

Each call gets an instance of its own, so nothing that a policy keeps in a variable outlives it. What a policy raises
becomes an error that users see. componentize-py makes the module `wit_world`, where the types of the contract are.
"""

import json

from componentize_py_types import Err
from wit_world.imports import log as _log
from wit_world.imports import types

#: The price of an offering that nobody knows.
UNKNOWN_PRICE = 0xFFFFFFFF


class InvalidConfig(Exception):
    """Raise it when the configuration cannot work: the message goes to the NodeClass."""


class Unsupported(Exception):
    """Raise it when the policy does not do what it was asked for."""


def word(table, index):
    """The name behind an index into one of the tables of a vocabulary; empty when the index is none."""
    return table[index] if index < len(table) else ""


def log(level, message, **fields):
    """log("info", "message", key="value") writes into the controller's log, with the policy's name."""
    pairs = [(key, str(value)) for key, value in fields.items()]
    _log.emit(_log.Level[level.upper()], message, pairs)


class Policy:
    """What every policy says about itself. The schema and the default are what json.loads would give."""

    name = ""
    version = "0.1.0"
    summary = ""
    config_schema = None
    default_config = None
    #: How often the answer may change with ctx.as_of_unix_s; 0 when the policy does not look at it.
    time_step_s = 0

    def check(self, config):
        """What is wrong with a configuration although the schema accepts it, as pairs (JSON Pointer, message)."""
        return []


class SelectionPolicy(Policy):
    def select(self, config, ctx, candidates):
        """Two lists: Ranked(candidate, score), and Excluded(candidate, offering or None, reason)."""
        raise NotImplementedError


class PricingPolicy(Policy):
    def adjust(self, config, ctx, candidates):
        """A list of Adjustment(candidate, offering, price_micros, reason or None)."""
        raise NotImplementedError


class BootstrapPolicy(Policy):
    def render(self, config, node, parts):
        """The parts of the user data, as Part(content_type, name or None, body)."""
        raise NotImplementedError


def export(policy):
    """The two classes that the component exports, the second one named as in the hook's interface."""
    if issubclass(policy, SelectionPolicy):
        return _lifecycle(policy), _selection(policy)
    if issubclass(policy, PricingPolicy):
        return _lifecycle(policy), _pricing(policy)
    if issubclass(policy, BootstrapPolicy):
        return _lifecycle(policy), _bootstrap(policy)
    raise TypeError(f"{policy.__name__} derives from none of SelectionPolicy, PricingPolicy and BootstrapPolicy")


def _lifecycle(policy):
    from wit_world import exports
    from wit_world.exports.lifecycle import ConfigError, Metadata

    class Lifecycle(exports.Lifecycle):
        def describe(self):
            return Metadata(
                policy.name,
                policy.version,
                policy.summary,
                _text(policy.config_schema),
                _text(policy.default_config),
                policy.time_step_s,
            )

        def validate_config(self, config):
            try:
                errors = [ConfigError(path, message) for path, message in policy().check(_parse(config))]
            except Exception as error:
                errors = [ConfigError("", _tell(error))]
            if errors:
                raise Err(errors)

    return Lifecycle


def _selection(policy):
    from wit_world import exports
    from wit_world.exports.instance_selection import Selection

    class InstanceSelection(exports.InstanceSelection):
        def select(self, config, ctx, candidates):
            ranked, excluded = _answer(lambda: policy().select(_parse(config), ctx, candidates))
            return Selection(ranked, excluded)

    return InstanceSelection


def _pricing(policy):
    from wit_world import exports

    class PricingPreference(exports.PricingPreference):
        def adjust(self, config, ctx, candidates):
            return _answer(lambda: policy().adjust(_parse(config), ctx, candidates))

    return PricingPreference


def _bootstrap(policy):
    from wit_world import exports

    class BootstrapUserdata(exports.BootstrapUserdata):
        def render(self, config, node, parts):
            return _answer(lambda: policy().render(_parse(config), node, parts))

    return BootstrapUserdata


def _text(value):
    return "" if value is None else json.dumps(value)


def _parse(config):
    try:
        return json.loads(config)
    except ValueError as error:
        raise InvalidConfig(f"is not JSON: {error}") from error


def _answer(work):
    """Whatever is raised becomes an error of the contract, with its type and place."""
    try:
        return work()
    except InvalidConfig as error:
        raise Err(types.PolicyError_InvalidConfig(str(error))) from error
    except Unsupported as error:
        raise Err(types.PolicyError_Unsupported(str(error))) from error
    except Exception as error:
        raise Err(types.PolicyError_Internal(_tell(error))) from error


def _tell(error):
    # Not by the module traceback, which looks for source files.
    place, frame = "", error.__traceback__
    while frame is not None:
        place = f" (line {frame.tb_lineno} in {frame.tb_frame.f_code.co_name})"
        frame = frame.tb_next
    return f"{type(error).__name__}: {error}{place}"
