// What is known of each key of the installation: what it is for, how many rows still need it, what is due and when. It decides by the
// rules of `tokenmill status` and of the commands of keys; nothing is counted.
import { dateOf } from '../../../src/clock.ts'
import type { SeenDataKey, SeenKek, SeenSigningKey } from '../../../src/store/console/installation/keys.ts'
import { CRYPTOPERIOD_DAYS, KEK_DAYS, NOTICE_DAYS, SIGNING_DAYS } from '../../../src/vault/ring/cryptoperiod.ts'
import { count } from '../figures.ts'

type Purpose = keyof typeof CRYPTOPERIOD_DAYS

/** What each data key is for. */
export const ABOUT: Record<Purpose, string> = {
  seal: 'encrypts card numbers',
  fingerprint: 'finds a card that is known already',
  analytics: 'makes the tokens of the type ANALYTICS',
  digest: 'knows a job that is sent again',
  'api-key': 'hashes API keys',
  intake: 'knows a batch that is sent again',
  'before-image': 'encrypts copies of rows, kept for a day',
  'three-ds': 'encrypts keys of 3-D Secure contracts',
  'network-token': 'encrypts numbers of network tokens',
  webhook: 'encrypts secrets of webhooks',
  owner: 'hashes references that were released',
  manifest: 'encrypts keys of the totals of migrations',
  'private-half': 'encrypts private halves of other keys',
  audit: 'makes the codes of audit rows',
  grant: 'makes codes of rows that grant rights',
  receipt: 'makes codes of what was decided and is told',
}

export interface Due {
  /** In a sentence without a full stop. */
  says: string
  /** `warn`: it is time; `plain`: nothing is to be done now. */
  tone: 'plain' | 'warn' | 'bad'
  /** The words of the command after `tokenmill`; undefined: there is nothing to run. */
  command: readonly string[] | undefined
}

const DAY_MS = 86_400_000

const isPurpose = (word: string): word is Purpose => Object.hasOwn(CRYPTOPERIOD_DAYS, word)

export function aboutOf(purpose: string): string {
  return isPurpose(purpose) ? ABOUT[purpose] : 'a key of another release'
}

/** What is due at a date: a warning from some days before it on, as `status` gives it. */
function dueBy(at: number, now: number, command: readonly string[]): Due {
  const tone = now >= at - NOTICE_DAYS * DAY_MS ? 'warn' : 'plain'
  return { says: `replace it by ${dateOf(at)}`, tone, command }
}

export function dataKeyDue(key: SeenDataKey, now: number, backupDays: number): Due {
  const { purpose, version, state } = key
  if (key.compromisedAt !== null)
    return {
      says: `somebody else may have it, as was said on ${dateOf(key.compromisedAt)}; not all was done about it`,
      tone: 'bad',
      command: ['key', 'compromise', purpose],
    }
  if (state === 'PENDING')
    return { says: 'comes into use once every process has it', tone: 'plain', command: ['key', 'rotate', purpose] }
  if (state === 'ACTIVE') return activeDue(key, now)
  return formerDue(key, backupDays, { destroy: ['key', 'destroy', purpose, String(version)] })
}

function activeDue({ purpose, activatedAt, isFull }: SeenDataKey, now: number): Due {
  const rotate = ['key', 'rotate', purpose]
  if (isFull) return { says: 'has made half of the seals that a key may make', tone: 'warn', command: rotate }
  if (!isPurpose(purpose) || activatedAt === null) return { says: 'not known', tone: 'plain', command: undefined }
  const due = dueBy(activatedAt + CRYPTOPERIOD_DAYS[purpose] * DAY_MS, now, rotate)
  if (purpose !== 'analytics') return due
  return { ...due, says: `${due.says}: others’ values change with it`, command: undefined }
}

function formerDue(
  { purpose, version, provedBy, retiredAt, reseal }: SeenDataKey,
  backupDays: number,
  { destroy }: { destroy: readonly string[] },
): Due {
  if (purpose === 'fingerprint')
    return {
      says: 'cards may be known under it alone; retire it once none is',
      tone: 'plain',
      command: ['key', 'retire', purpose, String(version)],
    }
  if (provedBy === null) return { says: 'stays: it verifies old rows', tone: 'plain', command: undefined }
  const isProved = provedBy === 'age' ? retiredAt : reseal && reseal.version > version ? reseal.cleanAt : null
  if (provedBy === 'pass' && (isProved === null || reseal?.state !== 'DONE'))
    return { says: 'encrypt its rows anew, then destroy it', tone: 'plain', command: ['key', 'reseal', purpose] }
  const from = (isProved ?? 0) + backupDays * DAY_MS
  return {
    says: `may be destroyed from ${dateOf(from)} on, when no older backup is kept and no row names it`,
    tone: 'plain',
    command: destroy,
  }
}

/** How many rows still need a key, where that is known without counting. */
export function rowsUnder({ state, version, provedBy, reseal }: SeenDataKey): string {
  if (state === 'PENDING') return 'none yet'
  if (state === 'ACTIVE') return 'new ones'
  if (provedBy === 'age') return 'fewer each day: they go with their age'
  if (provedBy === null) return 'its old ones'
  if (!reseal || reseal.version <= version) return 'not known: nothing was encrypted anew since'
  if (reseal.state === 'DONE')
    return reseal.cleanAt === null ? 'not known' : `none, proved on ${dateOf(reseal.cleanAt)}`
  const left = Math.max(0, reseal.passFound - reseal.passDone)
  const done = `${count(reseal.passDone)} encrypted anew in this pass${left > 0 ? `, ${count(left)} left of those found` : ''}`
  return reseal.state === 'CANCELLED' ? `${done}; it was cancelled` : done
}

export function kekDue({ kekId, state, createdAt, retiredAt, lacking }: SeenKek, now: number, backupDays: number): Due {
  const rotate = ['key', 'rotate', 'kek', '--to', 'ID']
  if (state === 'PENDING')
    return {
      says: 'a rotation to it has begun and has not ended',
      tone: 'warn',
      command: ['key', 'rotate', 'kek', '--to', kekId],
    }
  if (state === 'ACTIVE' && lacking.length > 0)
    return {
      says: `${lacking.slice(0, 5).join(', ')} could not start again: add it to TOKENMILL_KEK there`,
      tone: 'warn',
      command: ['key', 'list', 'kek'],
    }
  if (state === 'ACTIVE') return dueBy(createdAt + KEK_DAYS * DAY_MS, now, rotate)
  const until = (retiredAt ?? createdAt) + backupDays * DAY_MS
  const command = ['key', 'forget', 'kek', kekId]
  if (now < until) return { says: `backups may need it until ${dateOf(until)}`, tone: 'plain', command }
  return { says: `may be forgotten since ${dateOf(until)}, if no older backup is kept`, tone: 'plain', command }
}

/** `isNextAnnounced`: then it is replaced without an operator. */
export function signingKeyDue({ state, activeAt }: SeenSigningKey, now: number, isNextAnnounced: boolean): Due {
  const command = ['key', 'rotate', 'signing']
  if (state === 'ANNOUNCED') return { says: `begins to sign on ${dateOf(activeAt)}`, tone: 'plain', command }
  if (state === 'RETIRED') return { says: 'verifies old results for good', tone: 'plain', command: undefined }
  if (isNextAnnounced) return { says: 'the announced key takes its place', tone: 'plain', command }
  return dueBy(activeAt + SIGNING_DAYS * DAY_MS, now, command)
}
