// Launches the families that you like first, and never those that you dislike. Within a family the cheapest stays first.

import { selectionPolicy, word } from '../../../sdk/js/kerf-policy.js';

const configSchema = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  type: 'object',
  additionalProperties: false,
  properties: {
    weights: {
      description:
        'Score of each instance family, such as {"ecs.g8i": 100, "ecs.g7": 50}. Families with a higher score are launched first; those that are not named come last.',
      type: 'object',
      additionalProperties: { type: 'integer', minimum: -1000000, maximum: 1000000 },
    },
    exclude: {
      description: 'Families that are never launched.',
      type: 'array',
      items: { type: 'string', minLength: 1 },
    },
  },
};

export const { lifecycle, instanceSelection } = selectionPolicy({
  about: {
    name: 'prefer-family',
    version: '0.1.0',
    summary: 'ranks instance families by weight and excludes some',
    configSchema,
    defaultConfig: { weights: {}, exclude: [] },
  },

  check({ weights = {}, exclude = [] }) {
    const both = Object.keys(weights)
      .filter((family) => exclude.includes(family))
      .map((family) => ({ path: `/weights/${family}`, message: 'is excluded too; remove it from one of the two' }));
    const noPrefix = [...Object.keys(weights), ...exclude]
      .filter((family) => !family.startsWith('ecs.'))
      .map((family) => ({ path: '', message: `"${family}" is not a family; write it as ecs.${family}` }));
    return [...both, ...noPrefix];
  },

  select({ weights = {}, exclude = [] }, ctx, candidates) {
    const ranked = [];
    const excluded = [];
    candidates.forEach((it, candidate) => {
      const family = word(ctx.vocabulary.families, it.family);
      if (exclude.includes(family)) {
        excluded.push({ candidate, reason: `family ${family} is excluded` });
      } else if (Object.hasOwn(weights, family)) {
        ranked.push({ candidate, score: weights[family] });
      }
    });
    return { ranked, excluded };
  },
});
