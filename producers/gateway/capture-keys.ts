// The capture keys to which a gateway encrypts clear cards, and which it hands out: those that a believed signing key of the
// installation has stated. A row of the database alone proves nothing.
import { ConfigError } from '../../src/config.ts'
import { Fault } from '../../src/errors.ts'
import * as captureKeys from '../../src/store/access/capture-keys.ts'
import { type PublicCaptureKey, readPublicCaptureKey, verifyCaptureKey } from '../../src/vault/capture/encrypt.ts'
import type { GatewayDeps } from './deps.ts'

type Proving = Pick<GatewayDeps, 'store' | 'trusted' | 'settings' | 'clock' | 'onUngranted'>

export interface ProvedKey {
  info: captureKeys.CaptureKeyInfo
  key: PublicCaptureKey
}

/**
 * The keys that the entity's senders may encrypt to, newest first; of `types` only. Throws `Fault('capture_unproved')` if the
 * entity has such keys and the statement of none of them holds.
 */
export async function findCaptureKeys(
  deps: Proving,
  entityId: string,
  types: readonly captureKeys.CaptureKeyType[] = captureKeys.CAPTURE_KEY_TYPES,
): Promise<ProvedKey[]> {
  const stored = (await captureKeys.listHandedOut(deps.store, entityId)).filter(({ type }) => types.includes(type))
  const proved = (await Promise.all(stored.map(info => prove(deps, info, entityId)))).flatMap(found => found ?? [])
  if (stored.length > 0 && proved.length === 0) throw new Fault('capture_unproved')
  return proved
}

async function prove(
  deps: Proving,
  info: captureKeys.CaptureKeyInfo,
  entityId: string,
): Promise<ProvedKey | undefined> {
  const key = await verify(deps, info, entityId)
  if (key) return { info, key }
  // The signing key of the statement may have been announced a moment ago.
  await deps.trusted.renew([])
  const again = await verify(deps, info, entityId)
  if (again) return { info, key: again }
  deps.onUngranted('capture-key', captureKeys.captureKeyName(info))
  return undefined
}

async function verify(
  { trusted, settings, clock }: Proving,
  { alias, publicKey, statement }: captureKeys.CaptureKeyInfo,
  entityId: string,
): Promise<PublicCaptureKey | undefined> {
  if (statement === null) return undefined
  try {
    const key = await readPublicCaptureKey(alias, publicKey)
    const { until } = verifyCaptureKey(key, statement, { audience: settings.audience, entityId, keys: trusted.keys })
    return until > clock() ? key : undefined
  } catch (error) {
    if (error instanceof ConfigError) return undefined
    throw error
  }
}
