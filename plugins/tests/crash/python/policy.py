"""Fails in the way that its configuration names, so that tests see what becomes of exceptions."""

from kerf_policy import InvalidConfig, SelectionPolicy, Unsupported, export, log


class Crash(SelectionPolicy):
    name = "crash"

    def select(self, config, ctx, candidates):
        how = config.get("how")
        if not candidates or how is None:
            return [], []
        log("info", "about to fail", how=how)
        if how == "config":
            raise InvalidConfig("deliberate")
        if how == "unsupported":
            raise Unsupported("deliberate")
        raise RuntimeError("deliberate")


Lifecycle, InstanceSelection = export(Crash)
