"""Launches the families that you like first, and never those that you dislike. Within a family the cheapest stays first."""

from kerf_policy import SelectionPolicy, export, word
from wit_world.exports.instance_selection import Excluded, Ranked


class PreferFamily(SelectionPolicy):
    name = "prefer-family"
    summary = "ranks instance families by weight and excludes some"
    config_schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "weights": {
                "description": 'Score of each instance family, such as {"ecs.g8i": 100, "ecs.g7": 50}. Families with a '
                "higher score are launched first; those that are not named come last.",
                "type": "object",
                "additionalProperties": {"type": "integer", "minimum": -1000000, "maximum": 1000000},
            },
            "exclude": {
                "description": "Families that are never launched.",
                "type": "array",
                "items": {"type": "string", "minLength": 1},
            },
        },
    }
    default_config = {"weights": {}, "exclude": []}

    def check(self, config):
        weights, exclude = config.get("weights", {}), config.get("exclude", [])
        both = [
            (f"/weights/{family}", "is excluded too; remove it from one of the two")
            for family in weights
            if family in exclude
        ]
        no_prefix = [
            ("", f'"{family}" is not a family; write it as ecs.{family}')
            for family in [*weights, *exclude]
            if not family.startswith("ecs.")
        ]
        return both + no_prefix

    def select(self, config, ctx, candidates):
        weights, exclude = config.get("weights", {}), config.get("exclude", [])
        ranked, excluded = [], []
        for candidate, it in enumerate(candidates):
            family = word(ctx.vocabulary.families, it.family)
            if family in exclude:
                excluded.append(Excluded(candidate, None, f"family {family} is excluded"))
            elif family in weights:
                ranked.append(Ranked(candidate, weights[family]))
        return ranked, excluded


Lifecycle, InstanceSelection = export(PreferFamily)
