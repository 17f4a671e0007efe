// The store behind the ports of the 3-D Secure flows: one pool, with secrets that the vault's key ring seals and opens.
// The transaction that saves the end of an authentication also writes its event. Nothing is decided here.
import { notificationOf } from '../../three-ds/notification.ts'
import type { Authentications, Contracts, Jwts } from '../../three-ds/ports.ts'
import type { Authentication } from '../../three-ds/record.ts'
import { isFinal } from '../../three-ds/transition.ts'
import * as clients from '../access/clients.ts'
import type { Coder } from '../codes.ts'
import * as outbox from '../job/outbox.ts'
import { type Db, LostRace, type Store } from '../pool.ts'
import type { Sealer } from './authentication-row.ts'
import * as authentications from './authentications.ts'
import * as contracts from './three-ds-contracts.ts'
import * as jwts from './three-ds-jwts.ts'

interface ThreeDsStore {
  authentications: Authentications
  jwts: Jwts
  contracts: Contracts
}

/** `isOurs`: whether tokenmill wrote the contract; another one is absent. */
export function openThreeDsStore(
  store: Store,
  sealer: Sealer & Coder,
  isOurs: (contract: contracts.SealedContract) => boolean,
): ThreeDsStore {
  return {
    authentications: {
      find: id => authentications.find(store, sealer, id),
      findByTransaction: id => authentications.findByTransaction(store, sealer, id),
      findByKey: (clientId, key) => authentications.findByKey(store, sealer, clientId, key),
      findOverdue: (now, limit) => authentications.findOverdue(store, now, limit),
      insert: record => authentications.insert(store, sealer, record),
      save: record => save(store, sealer, record),
      saveWithJwt: (record, jti, usedAt) => saveWithJwt(store, sealer, { record, jti, usedAt }),
    },
    jwts: {
      insert: jwt => jwts.insert(store, jwt),
      find: jti => jwts.find(store, jti),
      bind: (jti, contractId, authenticationId, since) =>
        jwts.bind(store, { jti, contractId, authenticationId, since }),
    },
    contracts: {
      find: async id => {
        const found = await contracts.find(store, id)
        return found && isOurs(found) ? contracts.openContract(sealer, found) : undefined
      },
    },
  }
}

interface Saving {
  record: Authentication | undefined
  jti: string
  usedAt: number
}

async function save(store: Store, sealer: Sealer & Coder, record: Authentication): Promise<boolean> {
  if (!isFinal(record.state)) return authentications.save(store, sealer, record)
  try {
    await store.transaction(db => saveAndTell(db, sealer, record))
    return true
  } catch (error) {
    if (error instanceof LostRace) return false
    throw error
  }
}

/**
 * Saves a record and, if the record has an end, its event. An end is never overwritten, so a record with an end has
 * just ended.
 */
async function saveAndTell(db: Db, sealer: Sealer & Coder, record: Authentication): Promise<void> {
  const [saved] = await Promise.all([
    authentications.save(db, sealer, record),
    isFinal(record.state) ? insertNotice(db, sealer, record) : undefined,
  ])
  if (!saved) throw new LostRace('changed meanwhile')
}

/** Saves the record and marks the JWT as used, or does neither. */
async function saveWithJwt(store: Store, sealer: Sealer & Coder, { record, jti, usedAt }: Saving) {
  try {
    return await store.transaction(async db => {
      // The JWT's row is updated first: if two transactions use one JWT, the second waits here and then finds it used.
      if (!(await jwts.use(db, jti, usedAt))) return 'used'
      if (record) await saveAndTell(db, sealer, record)
      return 'saved'
    })
  } catch (error) {
    if (error instanceof LostRace) return 'lost'
    throw error
  }
}

/**
 * Writes the end of an authentication as an outbox row, in the transaction that ends it: if the process dies right after,
 * the workers publish the row. Does nothing if the client is unknown or revoked.
 */
async function insertNotice(db: Db, coder: Coder, record: Authentication): Promise<void> {
  const client = await clients.find(db, record.clientId)
  if (!client || client.revokedAt !== null) return
  const event = notificationOf(record)
  await outbox.insert(db, coder, {
    clientId: record.clientId,
    replyTo: null,
    resultId: event.result_id,
    receiptId: event.result_id,
    revision: 0,
    body: JSON.stringify(event),
  })
}
