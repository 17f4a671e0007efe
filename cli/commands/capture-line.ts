// `tokenmill capture-key rotate|retire|turning`: the life of the keys of an alias. The rules are in the acts; this file
// puts them into words.
import {
  IDLE_MS,
  RETIRE_CAPTURE,
  type RetireRefusal,
  ROTATE_CAPTURE,
  type RotateRefusal,
  retireKey,
  rotateLine,
  setTurning,
  TURN_CAPTURE,
} from '../../src/acts/capture-keys.ts'
import { systemClock } from '../../src/clock.ts'
import * as captureKeys from '../../src/store/access/capture-keys.ts'
import { RETENTION } from '../../src/store/retention.ts'
import { makeCaptureKey } from '../../src/vault/capture/capture-key.ts'
import { KEYS_MAX } from '../../src/vault/capture/keys-max.ts'
import { withStatement } from '../../src/vault/capture/statement.ts'
import type { JsonOption } from '../command.ts'
import { EXIT, Stop } from '../exit.ts'
import { openStating } from '../open/capture-keys.ts'
import { openCommandStore, openVault, withSession } from '../open/open.ts'
import { byOf, type OperatorOptions } from '../open/operator.ts'
import { moment, print, say, type Terminal } from '../terminal.ts'
import { importFile } from './capture-key.ts'

interface RotateOptions extends JsonOption, OperatorOptions {
  import?: string
  again?: boolean
}

const UNKNOWN = 'There is no such capture key; `tokenmill capture-key list` lists them.'

const NOT_ROTATED: Record<RotateRefusal, string> = {
  unknown: UNKNOWN,
  ended: 'Its keys are retired, and an alias is never used again; make another with `tokenmill capture-key add`.',
  many: `It has ${KEYS_MAX} keys that are not destroyed yet, the most that a card is tried with; retire one with \`tokenmill capture-key retire\`, and rotate when it is destroyed.`,
  raced:
    'Another run has changed it meanwhile; look with `tokenmill capture-key list`, and run this again if it is needed.',
  type: 'The keys of an alias are all of one type, and this key is of another.',
}

export function rotate(terminal: Terminal, alias: string, options: RotateOptions): Promise<void> {
  return withSession(terminal, async session => {
    const vault = await openVault(session)
    const { store, halves, ring } = vault
    const by = await byOf({ action: ROTATE_CAPTURE, subject: alias }, options, store, ring)
    const stating = await openStating(session, vault)
    const { import: path, again = false } = options
    const passphrase = terminal.env['TOKENMILL_PGP_PASSPHRASE']
    const make = (type: captureKeys.CaptureKeyType) =>
      path === undefined ? makeCaptureKey(type, alias, halves) : importFile(path, alias, type, halves, passphrase)
    const ended = await rotateLine({ store, stating, make }, { alias, again }, by, systemClock())
    if ('refused' in ended) throw new Stop(`${alias}: ${NOT_ROTATED[ended.refused]}`)
    const { key, isNew } = ended.done
    const name = captureKeys.captureKeyName(key)
    const from = moment(key.createdAt + captureKeys.SETTLED_MS)
    say(
      terminal,
      isNew
        ? `${name} is made. Encrypt to it from ${from} on; cards to the former keys of ${alias} open as before.`
        : `${name} was made at ${moment(key.createdAt)}; nothing was changed. --again makes a further key.`,
    )
    const publicKey = withStatement(key.publicKey, key.statement)
    const { number, entityId, type } = key
    const shown = { alias, number, entity_id: entityId, type, is_new: isNew, from, public_key: publicKey }
    print(terminal, options, shown, publicKey.trimEnd().split('\n'))
  })
}

interface RetireOptions extends JsonOption, OperatorOptions {
  key?: number
  until?: number
}

const NOT_RETIRED: Record<Exclude<RetireRefusal, 'retired'>, string> = {
  unknown: UNKNOWN,
  which: 'It has several active keys; name one with --key.',
  unsettled: 'Its other key was made a few seconds ago, and a worker may not know it yet; run this again in 10 s.',
  used: 'It is in use.',
}

export function retire(terminal: Terminal, alias: string, options: RetireOptions): Promise<void> {
  return withSession(terminal, async session => {
    const { store, ring } = await openVault(session)
    const now = systemClock()
    const { key: number, until = now } = options
    if (until < now) throw new Stop('--until lies in the past', EXIT.usage)
    const subject = number === undefined ? alias : captureKeys.captureKeyName({ alias, number })
    const by = await byOf({ action: RETIRE_CAPTURE, subject }, options, store, ring)
    const ended = await retireKey(store, ring, { alias, number, until }, by, now)
    if ('refused' in ended) {
      if (ended.refused !== 'retired') throw new Stop(`${alias}: ${NOT_RETIRED[ended.refused]}`)
      const line = await captureKeys.findLine(store, alias)
      const key = number === undefined ? line[0] : line.find(one => one.number === number)
      throw new Stop(`This capture key was already retired at ${moment(key?.retiredAt ?? null)}.`)
    }
    const retired = ended.done
    const left = await captureKeys.listHandedOut(store, retired.entityId)
    if (left.length === 0)
      say(terminal, 'The entity has no active capture key left; make one with `tokenmill capture-key add`.')
    if (retired.lastUsedAt !== null && retired.lastUsedAt > now - IDLE_MS)
      say(terminal, `It was last used at ${moment(retired.lastUsedAt)} by ${retired.lastUsedBy}.`)
    const name = captureKeys.captureKeyName(retired)
    const shown = { alias, number: retired.number, state: retired.state, until: moment(until) }
    const end = `its private half is destroyed ${RETENTION.captureKeyDays} days after ${moment(until)}`
    print(terminal, options, shown, `${name} is retired; ${end}`)
  })
}

interface TurningOptions extends JsonOption, OperatorOptions {
  every?: number
  off?: boolean
}

export function turning(terminal: Terminal, entityId: string, options: TurningOptions): Promise<void> {
  return withSession(terminal, async session => {
    const { every: everyDays, off = false } = options
    if ((everyDays === undefined) !== off) throw new Stop('give one of --every and --off', EXIT.usage)
    const { store } = await openCommandStore(session)
    const by = await byOf({ action: TURN_CAPTURE, subject: entityId }, options, store)
    const ended = await setTurning(store, { entityId, everyDays }, by)
    if ('refused' in ended)
      throw new Stop('The capture keys of this entity do not turn by themselves; nothing was changed.')
    const shown = { entity_id: entityId, every_days: everyDays ?? null }
    const words =
      everyDays === undefined
        ? 'The capture keys of this entity turn only by command now.'
        : `Each capture key of this entity is replaced when it is ${everyDays} days old; a former key is retired once nobody has used it for ${IDLE_MS / 86_400_000} days.`
    print(terminal, options, shown, words)
  })
}
