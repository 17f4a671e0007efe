// Makes rows as handlers do, for tests of writing effects.
import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { systemClock } from '../../../src/clock.ts'
import * as keyLives from '../../../src/store/access/key-lives.ts'
import type { NewReceipt } from '../../../src/store/job/receipts.ts'
import type { Db } from '../../../src/store/pool.ts'
import type { StoredToken } from '../../../src/store/token/tokens.ts'
import { noNetworks } from '../../../workers/networks.ts'
import { CODER } from '../../store/coder.ts'

const hashOf = (key: string) => createHash('sha256').update(key).digest()
const ring = {
  ownerHash: (key: string) => ({ hash: hashOf(key), keyVersion: 1 }),
  ownerHashes: (key: string) => [hashOf(key)],
  ownerVersions: () => [1],
  ...CODER,
}
export const deps = { clock: systemClock, ring, networks: noNetworks }
export const SCOPE = randomUUID()

/** The phase of the fingerprint key in which these rows' cards were hashed. */
const TURN = 'a phase'

/** Makes the store say this phase, as an installation does. */
export async function beginPhase(store: Db): Promise<void> {
  await keyLives.insert(store, { epoch: 1, keys: '[]', phase: TURN, kekId: 'kek-1', proof: Buffer.alloc(0) })
}

export function cardOf(): Pick<StoredToken, 'cards' | 'link'> {
  const kept = [randomUUID()]
  return { cards: kept, link: { kept, versions: [1], known: kept, turn: TURN } }
}

export function token(over: Partial<StoredToken> = {}): StoredToken {
  return {
    ...cardOf(),
    tokenId: randomUUID(),
    tokenScope: SCOPE,
    status: 'ACTIVE',
    suspendedReason: null,
    tokenType: 'REUSE',
    sealed: randomBytes(40),
    sealVersion: 1,
    bin: '411111',
    lastFour: '1111',
    expiryMonth: 12,
    expiryYear: 2031,
    cardHolderName: null,
    cardHolderEmail: null,
    cardSequence: null,
    startMonth: null,
    startYear: null,
    brand: 'VISA',
    cardBrand: null,
    binRange: null,
    analyticsToken: null,
    thirdParty: null,
    tokenExpiryDate: null,
    createdAt: 0,
    updatedAt: 0,
    version: 1,
    lastReceipt: null,
    mark: null,
    givenAt: null,
    ...over,
  }
}

export function receipt(over: Partial<NewReceipt> = {}): NewReceipt {
  return {
    receiptId: randomUUID(),
    entityId: null,
    clientId: 'c',
    iss: 'c',
    kind: 'token-create',
    jti: 'a "quoted", \\ name',
    requestDigest: randomBytes(32),
    digestVersion: 1,
    envelopeDigest: randomBytes(32),
    answers: randomBytes(32),
    replyTo: null,
    reference: null,
    status: 'SUCCEEDED',
    code: 200,
    outcome: 'CREATED',
    refusal: null,
    tokenId: null,
    batchNo: null,
    chunk: null,
    counts: null,
    reasons: null,
    outcomes: null,
    failedRecords: 0,
    revision: 1,
    reversal: null,
    attempt: 1,
    acceptedAt: 1_000,
    completedAt: 2_000,
    ...over,
  }
}
