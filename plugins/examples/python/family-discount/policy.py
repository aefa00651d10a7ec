"""Orders by the price that you really pay: takes a discount per family off, or adds a cost that the bill does not show."""

from kerf_policy import UNKNOWN_PRICE, PricingPolicy, export, word
from wit_world.exports.pricing_preference import Adjustment


class FamilyDiscount(PricingPolicy):
    name = "family-discount"
    summary = "takes a discount per instance family off the price that ordering uses"
    config_schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "percentOff": {
                "description": 'What a contract takes off the price of each instance family, such as {"ecs.g8i": 15}. A '
                "negative number makes a family dearer, for example by what its carbon costs.",
                "type": "object",
                "additionalProperties": {"type": "integer", "minimum": -900, "maximum": 90},
            }
        },
    }
    default_config = {"percentOff": {}}

    def adjust(self, config, ctx, candidates):
        percent_off = config.get("percentOff", {})
        adjustments = []
        for candidate, it in enumerate(candidates):
            family = word(ctx.vocabulary.families, it.family)
            percent = percent_off.get(family)
            if percent is None:
                continue
            for offering, sold in enumerate(it.offerings):
                if sold.price_micros == UNKNOWN_PRICE:
                    continue
                price = max(sold.price_micros * (100 - percent) // 100, 0)
                adjustments.append(
                    Adjustment(candidate, offering, min(price, UNKNOWN_PRICE - 1), f"{percent} % off {family}")
                )
        return adjustments


Lifecycle, PricingPreference = export(FamilyDiscount)
