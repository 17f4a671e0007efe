// Finds the card that a lookup names: the card of a token of the caller's entities, or a card encrypted to one of their
// capture keys. The card is decrypted in this process for this request only, and is passed on as a Secret.
import { cached } from '../../../src/cache.ts'
import type { Clock } from '../../../src/clock.ts'
import { isRefusal } from '../../../src/errors.ts'
import * as captureKeys from '../../../src/store/access/capture-keys.ts'
import type { CaptureUse } from '../../../src/store/capture/use.ts'
import type { Store } from '../../../src/store/pool.ts'
import * as tokens from '../../../src/store/token/tokens.ts'
import type { CardSource, FoundCard, Ports } from '../../../src/three-ds/ports.ts'
import { type Problem, problem, problemOf } from '../../../src/three-ds/problem.ts'
import type { Caller } from '../../../src/three-ds/record.ts'
import { BRANDS, type Brand, detectBrand, isPossibleLength } from '../../../src/token/brand.ts'
import { parseCapture } from '../../../src/token/card.ts'
import { parseReuseToken } from '../../../src/token/token.ts'
import { openCardByLine } from '../../../src/vault/capture/line.ts'
import { lineOpener, type OpenedLine, openByLine } from '../../../src/vault/capture/open-line.ts'
import type { PrivateHalves } from '../../../src/vault/private-half.ts'
import type { KeyRing } from '../../../src/vault/ring/key-ring.ts'
import type { TellUngranted } from '../../../src/vault/ring/ungranted.ts'
import type { Directory } from '../directory.ts'

export interface CardVault {
  store: Store
  ring: Pick<KeyRing, 'open' | 'grantMacBy'>
  halves: PrivateHalves
  directory: Pick<Directory, 'scope'>
  captureUse: Pick<CaptureUse, 'note'>
  /** Told of a row that tokenmill didn't write, or that was changed since, each time that it is read. */
  onUngranted: TellUngranted
  clock: Clock
}

/** After this time a destroyed key is no longer cached. */
const BELIEVED_MS = 4_000
/** What can't be decrypted makes a process read a line at most so often. */
const ANEW_MS = 250
const LINES_MAX = 10_000

export function openCards(vault: CardVault): Ports['findCard'] {
  const { clock, ring, halves } = vault
  const onUngranted = (key: { alias: string; number: number }) =>
    vault.onUngranted('capture-key', captureKeys.captureKeyName(key))
  const openLine = lineOpener({ ring, halves, onUngranted })
  const lineAnew = cached(async (alias: string) => openLine(alias, await captureKeys.findLine(vault.store, alias)), {
    max: LINES_MAX,
    lifetime: { ms: ANEW_MS, clock },
  })
  const lineOf = cached(lineAnew, { max: LINES_MAX, lifetime: { ms: BELIEVED_MS, clock } })
  return (caller, source) =>
    source.kind === 'token'
      ? cardOfToken(vault, caller, source)
      : encryptedCard({ vault, lineOf, lineAnew, caller, source })
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
  }
}

function brandOf(name: string | null): Brand | undefined {
  return BRANDS.find(brand => brand === name)
}

interface Encrypted {
  vault: CardVault
  lineOf: (alias: string) => Promise<OpenedLine | undefined>
  lineAnew: (alias: string) => Promise<OpenedLine | undefined>
  caller: Caller
  source: Extract<CardSource, { kind: 'encrypted' }>
}

async function encryptedCard(given: Encrypted): Promise<FoundCard | Problem> {
  const { vault, caller, source } = given
  const known = await given.lineOf(source.alias)
  if (!known || !caller.entities.includes(known.entityId))
    return problem(301, { field: 'body.public_key_alias', reason: 'alias_unknown' })
  const opened = await openByLine(
    known,
    () => given.lineAnew(source.alias),
    line => openCardByLine(source.encryptedCard, line),
  )
  if (isRefusal(opened)) return problemOf(301, opened)
  vault.captureUse.note(opened.keyId, caller.clientId)
  const card = parseCapture(opened.plaintext.reveal(), { acceptedAt: vault.clock() })
  if (isRefusal(card)) return problemOf(301, card)
  const { pan, expiryMonth, expiryYear } = card
  const detected = detectBrand(pan.reveal())
  if (!isPossibleLength(pan.reveal(), detected)) return problem(301, { field: source.field, reason: 'pan_length' })
  return {
    pan,
    ...(expiryMonth === undefined || expiryYear === undefined ? {} : { expiryMonth, expiryYear }),
    detected,
    tokenId: null,
  }
}
