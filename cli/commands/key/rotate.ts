// `tokenmill key rotate KEY`: tells the keys apart by their names, and refuses options that belong to another key.
import { SHARED_PURPOSES } from '../../../src/vault/ring/shared-keys.ts'
import type { JsonOption } from '../../command.ts'
import { EXIT, Stop } from '../../exit.ts'
import type { OperatorOptions } from '../../open/operator.ts'
import type { Terminal } from '../../terminal.ts'
import { rotateDataKey } from './rotate-data-key.ts'
import { rotateFingerprint } from './rotate-fingerprint.ts'
import { rotateKek } from './rotate-kek.ts'
import { rotateSigning } from './rotate-signing.ts'

type Options = JsonOption &
  OperatorOptions & { to?: string; now?: boolean; yes?: boolean; cancel?: boolean; without?: readonly string[] }

export function rotate(terminal: Terminal, name: string, given: Options): Promise<void> {
  const { to, now, yes, cancel, without = [], ...options } = given
  if (without.length > 0 && !SHARED_PURPOSES.some(purpose => purpose === name))
    throw new Stop(`--without belongs to the keys that gateways know: ${SHARED_PURPOSES.join(', ')}.`, EXIT.usage)
  if (name !== 'signing' && (now || yes || cancel))
    throw new Stop('--now, --yes and --cancel belong to `key rotate signing`.', EXIT.usage)
  if (cancel && (now || yes)) throw new Stop('--cancel stands alone.', EXIT.usage)
  if (name === 'kek') {
    if (to === undefined) throw new Stop('--to is missing: name the next key-encryption key.', EXIT.usage)
    return rotateKek(terminal, { ...options, to })
  }
  if (to !== undefined) throw new Stop('--to belongs to `key rotate kek`.', EXIT.usage)
  if (name === 'fingerprint') return rotateFingerprint(terminal, options)
  if (name === 'signing') return rotateSigning(terminal, { ...options, now, yes, cancel })
  return rotateDataKey(terminal, name, { ...options, without: without.includes('all') ? 'all' : without })
}
