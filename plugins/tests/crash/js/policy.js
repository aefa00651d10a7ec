// Fails in the way that its configuration names, so that tests see what becomes of exceptions.

import { InvalidConfig, Unsupported, log, selectionPolicy } from '../../../sdk/js/kerf-policy.js';

export const { lifecycle, instanceSelection } = selectionPolicy({
  about: { name: 'crash', version: '0.1.0' },
  select({ how }, ctx, candidates) {
    if (candidates.length === 0 || how === undefined) return {};
    log.info('about to fail', { how });
    if (how === 'config') throw new InvalidConfig('deliberate');
    if (how === 'unsupported') throw new Unsupported('deliberate');
    throw new Error('deliberate');
  },
});
