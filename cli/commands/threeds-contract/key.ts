// `tokenmill threeds-contract key`: replaces the key of a 3-D Secure contract's JWTs, and ends the former one.
import { type ContractKeyRefusal, revokeFormerContractKey, rotateContractKey } from '../../../src/acts/contract-key.ts'
import { ConfigError } from '../../../src/config.ts'
import { Secret } from '../../../src/secret.ts'
import { makeJwtKey, readJwtKey } from '../../../src/vault/three-ds-jwt.ts'
import type { JsonOption } from '../../command.ts'
import { EXIT, Stop } from '../../exit.ts'
import { readArgumentFile } from '../../open/key-files.ts'
import { openCommandStore, openVault, withSession } from '../../open/open.ts'
import { byOf, type OperatorOptions } from '../../open/operator.ts'
import { facts, moment, print, type Terminal } from '../../terminal.ts'

const HOUR_MS = 3_600_000

type RotateOptions = JsonOption & OperatorOptions & { hours: number; atOnce?: boolean; jwtKey?: string }

const REFUSED: Record<ContractKeyRefusal, string> = {
  no_contract: 'There is no such contract (`tokenmill threeds-contract list`).',
  overlap:
    'A former key is still valid, and only two keys can be: wait until it ends, or end it with `tokenmill threeds-contract key revoke`.',
  no_former_key:
    'The contract has no former key that is valid. To end the key in use, put another one in its place: `tokenmill threeds-contract key rotate --at-once`.',
}

export function rotate(terminal: Terminal, contractId: string, options: RotateOptions): Promise<void> {
  return withSession(terminal, async session => {
    const key = options.jwtKey === undefined ? makeJwtKey() : await readKeyFile(options.jwtKey)
    const { store, ring } = await openVault(session)
    await ring.reserve('three-ds')
    const by = await byOf({ action: 'threeds-contract.key-rotate', subject: contractId }, options, store, ring)
    const formerMs = options.atOnce ? 0 : options.hours * HOUR_MS
    const rotation = { contractId, key, formerMs, isImported: options.jwtKey !== undefined }
    const { formerUntil } = done(await rotateContractKey(store, ring, rotation, by))
    const shown = { threeds_contract_id: contractId, former_key_until: moment(formerUntil) }
    print(terminal, options, shown, facts(shown))
  })
}

export function revoke(terminal: Terminal, contractId: string, options: JsonOption & OperatorOptions): Promise<void> {
  return withSession(terminal, async session => {
    const { store } = await openCommandStore(session)
    const by = await byOf({ action: 'threeds-contract.key-revoke', subject: contractId }, options, store)
    done(await revokeFormerContractKey(store, contractId, by))
    print(
      terminal,
      options,
      { threeds_contract_id: contractId, former_key_until: null },
      `The former key of ${contractId} has ended.`,
    )
  })
}

/** Throws `Stop` if the file holds no key. */
export async function readKeyFile(path: string): Promise<Secret<Buffer>> {
  const text = await readArgumentFile(path)
  try {
    return readJwtKey(new Secret(text))
  } catch (error) {
    if (error instanceof ConfigError) throw new Stop(`${path}: ${error.message}`, EXIT.usage)
    throw error
  }
}

function done<Done>(verdict: { done: Done } | { refused: ContractKeyRefusal }): Done {
  if ('refused' in verdict) throw new Stop(REFUSED[verdict.refused])
  return verdict.done
}
