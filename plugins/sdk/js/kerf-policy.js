// Write kerf policies in JavaScript: pass an object to selectionPolicy, pricingPolicy or bootstrapPolicy and export what
// comes back. Each call gets an instance of its own, so nothing that a policy keeps in a variable outlives it.
//
// A policy has `about` and one function; `check` is optional:
//   about   { name, version, summary, configSchema, defaultConfig, timeStepS }; schema and config are plain objects
//   check   (config) => [{ path, message }]: what is wrong with a configuration although the schema accepts it
//   select  (config, ctx, candidates) => { ranked: [{ candidate, score }], excluded: [{ candidate, offering, reason }] }
//   adjust  (config, ctx, candidates) => [{ candidate, offering, priceMicros, reason }]
//   render  (config, node, parts) => [{ contentType, name, body }]

import { emit } from 'kerf:policy/log@0.1.0';

/** The price of an offering that nobody knows. */
export const UNKNOWN_PRICE = 0xffffffff;

/** Throw it when the configuration cannot work: the message goes to the NodeClass. */
export class InvalidConfig extends Error {}

/** Throw it when the policy does not do what it was asked for. */
export class Unsupported extends Error {}

/** The name behind an index into one of the tables of a vocabulary; empty when the index is none. */
export const word = (table, index) => table[index] ?? '';

const say = (level) => (message, fields = {}) =>
  emit(level, String(message), Object.entries(fields).map(([key, value]) => [key, String(value)]));

/** log.info('message', { key: 'value' }) writes into the controller's log, with the policy's name. */
export const log = { debug: say('debug'), info: say('info'), warn: say('warn'), error: say('error') };

/** The exports of an InstanceSelection policy. */
export const selectionPolicy = (policy) => ({
  lifecycle: lifecycle(policy),
  instanceSelection: {
    select: (config, ctx, candidates) =>
      answer(() => {
        const { ranked = [], excluded = [] } = policy.select(parse(config), timed(ctx), priced(candidates));
        return { ranked, excluded };
      }),
  },
});

/** The exports of a PricingPreference policy. */
export const pricingPolicy = (policy) => ({
  lifecycle: lifecycle(policy),
  pricingPreference: {
    adjust: (config, ctx, candidates) => answer(() => policy.adjust(parse(config), timed(ctx), priced(candidates))),
  },
});

/** The exports of a BootstrapUserData policy. */
export const bootstrapPolicy = (policy) => ({
  lifecycle: lifecycle(policy),
  bootstrapUserdata: {
    render: (config, node, parts) => answer(() => policy.render(parse(config), node, parts)),
  },
});

const lifecycle = ({ about, check = () => [] }) => ({
  describe: () => ({
    name: about.name,
    version: about.version,
    summary: about.summary ?? '',
    configSchema: about.configSchema ? JSON.stringify(about.configSchema) : '',
    defaultConfig: about.defaultConfig ? JSON.stringify(about.defaultConfig) : '',
    timeStepS: about.timeStepS ?? 0,
  }),
  validateConfig(config) {
    let errors;
    try {
      errors = check(parse(config));
    } catch (error) {
      errors = [{ path: '', message: tell(error) }];
    }
    if (errors.length > 0) throw errors;
  },
});

// The engine hands numbers of 2 ** 31 and more over as negative ones; these are the only ones that can be so large.
const timed = (ctx) => {
  ctx.asOfUnixS >>>= 0;
  return ctx;
};

const priced = (candidates) => {
  for (const { offerings } of candidates) {
    for (const offering of offerings) {
      offering.priceMicros >>>= 0;
      offering.listPriceMicros >>>= 0;
    }
  }
  return candidates;
};

const parse = (config) => {
  try {
    return JSON.parse(config);
  } catch (error) {
    throw new InvalidConfig(`is not JSON: ${error.message}`);
  }
};

/** Whatever is thrown becomes an error that users see, with its name and place. */
const answer = (work) => {
  try {
    return work();
  } catch (error) {
    if (error instanceof InvalidConfig) throw { tag: 'invalid-config', val: error.message };
    if (error instanceof Unsupported) throw { tag: 'unsupported', val: error.message };
    throw { tag: 'internal', val: tell(error) };
  }
};

const tell = (error) => {
  if (!(error instanceof Error)) return String(error);
  const place = (error.stack ?? '').trim().split('\n')[0].trim();
  return `${error.name}: ${error.message}${place ? ` (${place})` : ''}`;
};
