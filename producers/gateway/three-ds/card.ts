// Finds the card that a lookup names: the card of a token of the caller's entities, or a card encrypted to one of their
// capture keys. The card is decrypted in this process for this request only, and is passed on as a Secret.
import { cached } from '../../../src/cache.ts'
import type { Clock } from '../../../src/clock.ts'
import { isRefusal } from '../../../src/errors.ts'
import * as captureKeys from '../../../src/store/access/capture-keys.ts'
import type { Store } from '../../../src/store/pool.ts'
import * as tokens from '../../../src/store/token/tokens.ts'
import type { CardSource, FoundCard, Ports } from '../../../src/three-ds/ports.ts'
import { type Problem, problem, problemOf } from '../../../src/three-ds/problem.ts'
import type { Caller } from '../../../src/three-ds/record.ts'
import { BRANDS, type Brand, detectBrand, isPossibleLength } from '../../../src/token/brand.ts'
import { parseCapture } from '../../../src/token/card.ts'
import { parseReuseToken } from '../../../src/token/token.ts'
import { openCaptureKey } from '../../../src/vault/capture.ts'
import type { KeyProvider } from '../../../src/vault/kek.ts'
import type { KeyRing } from '../../../src/vault/key-ring.ts'
import { openCard } from '../../../src/vault/open-card.ts'
import type { Directory } from '../directory.ts'

export interface CardVault {
  store: Store
  ring: Pick<KeyRing, 'open' | 'fingerprint'>
  kek: KeyProvider
  directory: Pick<Directory, 'scope'>
  clock: Clock
}

/** After this time a destroyed key is no longer cached. */
const BELIEVED_MS = 4_000
const KEYS_MAX = 10_000

export function openCards(vault: CardVault): Ports['findCard'] {
  const lifetime = { ms: BELIEVED_MS, clock: vault.clock }
  const keyOf = cached((alias: string) => findKey(vault, alias), { max: KEYS_MAX, lifetime })
  return (caller, entityId, source) =>
    source.kind === 'token'
      ? cardOfToken(vault, caller, source)
      : encryptedCard({ vault, key: keyOf(source.alias), caller, entityId, source })
}

async function cardOfToken(
  { store, ring, directory }: CardVault,
  caller: Caller,
  { token: name, field }: Extract<CardSource, { kind: 'token' }>,
): Promise<FoundCard | Problem> {
  const id = parseReuseToken(name)
  const [token] = id === undefined ? [] : await tokens.findByIds(store, [id])
  const scope = token && token.status !== 'DELETED' ? await directory.scope(token.tokenScope) : undefined
  // The answer is the same for another entity's token, a deleted one, a missing one, and one without a card.
  if (!token || !scope || !caller.entities.includes(scope.entityId) || !token.sealed || token.sealVersion === null)
    return problem(205, { field, reason: 'token_not_found' })
  if (token.status === 'SUSPENDED') return problem(301, { field, reason: 'token_suspended' })
  const pan = ring.open(token.sealed, token.sealVersion, token.tokenId, token.tokenScope)
  return {
    pan,
    ...(token.expiryMonth === null || token.expiryYear === null
      ? {}
      : { expiryMonth: token.expiryMonth, expiryYear: token.expiryYear }),
    detected: detectBrand(pan.reveal()) ?? brandOf(token.brand),
    cardBrand: token.cardBrand ?? token.brand ?? undefined,
    tokenId: token.tokenId,
    fingerprint: null,
  }
}

function brandOf(name: string | null): Brand | undefined {
  return BRANDS.find(brand => brand === name)
}

interface Encrypted {
  vault: CardVault
  key: ReturnType<typeof findKey>
  caller: Caller
  entityId: string
  source: Extract<CardSource, { kind: 'encrypted' }>
}

async function encryptedCard({ vault, key, caller, entityId, source }: Encrypted): Promise<FoundCard | Problem> {
  const known = await key
  if (!known || !caller.entities.includes(known.entityId))
    return problem(301, { field: 'body.public_key_alias', reason: 'alias_unknown' })
  const plaintext = await openCard(source.encryptedCard, known.key)
  if (isRefusal(plaintext)) return problemOf(301, plaintext)
  const card = parseCapture(plaintext.reveal(), { acceptedAt: vault.clock() })
  if (isRefusal(card)) return problemOf(301, card)
  const { pan, expiryMonth, expiryYear } = card
  const detected = detectBrand(pan.reveal())
  if (!isPossibleLength(pan.reveal(), detected)) return problem(301, { field: source.field, reason: 'pan_length' })
  return {
    pan,
    ...(expiryMonth === undefined || expiryYear === undefined ? {} : { expiryMonth, expiryYear }),
    detected,
    tokenId: null,
    fingerprint: vault.ring.fingerprint(pan, entityId),
  }
}

/** Finds a capture key whose private half isn't destroyed. */
async function findKey({ store, kek }: CardVault, alias: string) {
  const record = await captureKeys.find(store, alias)
  if (!record?.wrappedPrivate) return undefined
  const key = await openCaptureKey({ ...record, wrappedPrivate: record.wrappedPrivate }, kek)
  return { entityId: record.entityId, key }
}
