// Orders by the price that you really pay: takes a discount per family off, or adds a cost that the bill does not show.

import { UNKNOWN_PRICE, pricingPolicy, word } from '../../../sdk/js/kerf-policy.js';

const configSchema = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  type: 'object',
  additionalProperties: false,
  properties: {
    percentOff: {
      description:
        'What a contract takes off the price of each instance family, such as {"ecs.g8i": 15}. A negative number makes a family dearer, for example by what its carbon costs.',
      type: 'object',
      additionalProperties: { type: 'integer', minimum: -900, maximum: 90 },
    },
  },
};

export const { lifecycle, pricingPreference } = pricingPolicy({
  about: {
    name: 'family-discount',
    version: '0.1.0',
    summary: 'takes a discount per instance family off the price that ordering uses',
    configSchema,
    defaultConfig: { percentOff: {} },
  },

  adjust({ percentOff = {} }, ctx, candidates) {
    const adjustments = [];
    candidates.forEach((it, candidate) => {
      const family = word(ctx.vocabulary.families, it.family);
      if (!Object.hasOwn(percentOff, family)) return;
      const percent = percentOff[family];
      it.offerings.forEach(({ priceMicros: price }, offering) => {
        if (price === UNKNOWN_PRICE) return;
        const priceMicros = Math.min(Math.max(Math.floor((price * (100 - percent)) / 100), 0), UNKNOWN_PRICE - 1);
        adjustments.push({ candidate, offering, priceMicros, reason: `${percent} % off ${family}` });
      });
    });
    return adjustments;
  },
});
