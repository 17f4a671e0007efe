// `tokenmill key rotate kek`: makes another key-encryption key (KEK) the current one while every role works on. If it
// is killed and run again, it continues where it was. It makes and destroys no KEK.
import { setTimeout as pause } from 'node:timers/promises'
import { announceKek, type Turned, turnKek } from '../../../src/acts/key/keks.ts'
import { type Config, ConfigError } from '../../../src/config.ts'
import { BEAT } from '../../../src/store/access/beat.ts'
import * as captureKeys from '../../../src/store/access/capture-keys.ts'
import * as keks from '../../../src/store/access/keks.ts'
import * as processes from '../../../src/store/access/processes.ts'
import * as signingKeys from '../../../src/store/access/signing-keys.ts'
import * as installation from '../../../src/store/installation.ts'
import { type Db, LostRace, type Store } from '../../../src/store/pool.ts'
import type { HostKeks } from '../../../src/vault/kek/host.ts'
import { shownUri } from '../../../src/vault/kek/openers.ts'
import { makeProbe, prove } from '../../../src/vault/kek/probe.ts'
import { type KeyProvider, keksOf } from '../../../src/vault/kek/provider.ts'
import {
  captureHalfName,
  openPrivateHalves,
  type StoredPrivateHalf,
  signingHalfName,
} from '../../../src/vault/private-half.ts'
import { openKeyRing } from '../../../src/vault/ring/key-ring.ts'
import type { JsonOption } from '../../command.ts'
import { Stop } from '../../exit.ts'
import { kekListPath, kekSetting } from '../../open/kek.ts'
import { KEK_OPENERS } from '../../open/kek-openers.ts'
import { readKeys, storedLives } from '../../open/known-lives.ts'
import { type OpenedVault, openVault, withSession } from '../../open/open.ts'
import { byOf, type OperatorOptions } from '../../open/operator.ts'
import { print, say, type Terminal } from '../../terminal.ts'
import { secondOperatorOf } from './second-operator.ts'

type Options = JsonOption & OperatorOptions & { to: string }

export function rotateKek(terminal: Terminal, options: Options): Promise<void> {
  return withSession(terminal, async session => {
    const vault = await openVault(session)
    const to = chosen(session.config, vault.keks, options.to)
    const turned = vault.keks.current.id === to.id ? undefined : await turn(terminal, vault, to, options)
    const opened = await openAlone(vault, to)
    const value = {
      kek_id: to.id,
      former_kek_id: turned?.former ?? null,
      data_keys: opened.dataKeys,
      private_halves: opened.privateHalves,
    }
    const lines = [
      turned ? `${to.id} is the current key, in place of ${turned.former}.` : `${to.id} was the current key already.`,
      `With ${to.id} alone ${opened.dataKeys} data keys and, by them, ${opened.privateHalves} private halves open.`,
      ...(turned
        ? [
            `Backups from before need ${turned.former}; when none is left, run \`tokenmill key forget kek ${turned.former}\`.`,
          ]
        : []),
    ]
    print(terminal, options, value, lines)
  })
}

/** The key of this host that the user means. */
function chosen(config: Config, host: HostKeks, idOrUri: string): KeyProvider {
  const found = host.all().find(({ id }) => id === idOrUri) ?? host.named(idOrUri)
  if (found) return found
  const setting = kekSetting(config)
  const here = host.all().map(({ id }) => id)
  const failed = host.failures().map(({ shown, error }) => `${shown}: ${error.message}`)
  const list = kekListPath(config)
  const how =
    list !== undefined
      ? `add its URI to ${list}, here and on every host`
      : 'set TOKENMILL_KEK to a file that lists the URIs of both keys, here and on every host'
  throw new ConfigError(
    `${setting}: ${/:/.test(idOrUri) ? shownUri(idOrUri, KEK_OPENERS) : idOrUri} is none of this host's keys (${[...here, ...failed].join('; ')}); ${how}`,
  )
}

/** Returns undefined if another run of this command was first. */
async function turn(
  terminal: Terminal,
  vault: OpenedVault,
  to: KeyProvider,
  options: Options,
): Promise<Turned | undefined> {
  const { store, ring } = vault
  const by = (action: string) => byOf({ action, subject: to.id }, options, store, ring)
  const deed = { action: 'kek.rotate', subject: to.id }
  const second = secondOperatorOf(vault, deed, await by(deed.action))
  if (!(await second.isConfirmed())) {
    // Another run may have used the confirmation since this one began.
    if ((await installation.get(store)).kekId === to.id) return undefined
    return second.ask(terminal, options)
  }
  const announced = (await keks.findProbes(store)).find(({ kekId }) => kekId === to.id)
  if (announced) await prove(to, announced.probe)
  else await announceKek(store, { kekId: to.id, probe: await makeProbe(to) }, await by('kek.add'))
  const rotation = { ...vault, to }
  for (;;) {
    await untilProved(terminal, store, to.id)
    const isReady = async (db: Db) => (await lacking(db, to.id)).length === 0
    const { use: useConfirmation } = second
    const ended = await turnKek(rotation, { isReady, useConfirmation }, await by(deed.action)).catch(
      (error: unknown) => {
        // Data keys were added meanwhile: the next attempt wraps them, too.
        if (error instanceof LostRace) return { refused: 'not_ready' as const }
        throw error
      },
    )
    if ('done' in ended) return ended.done
    if (ended.refused === 'current') return undefined
    if (ended.refused === 'forgotten') throw new Stop(forgottenText(to.id))
    if (ended.refused === 'unconfirmed')
      throw new Stop(
        'The confirmation of the second operator expired meanwhile; run this command again to ask for another.',
      )
    await pause(LOOK_MS)
  }
}

const forgottenText = (kekId: string) =>
  `${kekId} was forgotten by \`tokenmill key forget kek\` while this rotation waited; nothing else was changed. Run this command again to begin anew.`

const LOOK_MS = 250
const SAY_MS = 10_000

/** Waits until every process that opens the vault has proved the key, and says for which it waits. */
async function untilProved(terminal: Terminal, store: Store, kekId: string): Promise<void> {
  let said = ''
  let saidAt = 0
  for (;;) {
    const late = await lacking(store, kekId)
    if (late.length === 0) return
    if (!(await keks.findProbes(store)).some(known => known.kekId === kekId)) throw new Stop(forgottenText(kekId))
    const now = performance.now()
    const list = late.map(({ host, role, version }) => `${host} ${role} (${version})`).join(', ')
    if (list !== said || now - saidAt > SAY_MS) {
      said = list
      saidAt = now
      say(
        terminal,
        `Waiting for processes that have not proved ${kekId} yet: ${list}. Does TOKENMILL_KEK name it there?`,
      )
    }
    await pause(LOOK_MS)
  }
}

/** The live processes that open the vault and lack the key. */
async function lacking(db: Db, kekId: string): Promise<processes.ProcessRow[]> {
  return (await processes.listVault(db, BEAT.deadMs)).filter(({ keys }) => !keys.includes(kekId))
}

const PAGE = 500

/**
 * Proves that the key-encryption key opens everything: opens every data key with it alone, and with these every private
 * half, drops them at once, and counts them. Throws `Fault('key_unavailable')` if one doesn't open.
 */
async function openAlone(
  { store, installationId }: Pick<OpenedVault, 'store' | 'installationId'>,
  kek: KeyProvider,
): Promise<{ dataKeys: number; privateHalves: number }> {
  const alone = keksOf(kek)
  const stored = await readKeys(store, storedLives({ store, keks: alone, installationId }))
  const halves = openPrivateHalves(await openKeyRing(alone, stored))
  const open = async (half: StoredPrivateHalf, name: string) => {
    const raw = await halves.open(half, name)
    raw.fill(0)
  }
  const signing = await signingKeys.listHalves(store)
  for (const { kid, ...half } of signing) await open(half, signingHalfName(kid))
  let privateHalves = signing.length
  for (let after: string | null | undefined = null; after !== undefined; ) {
    const page: Awaited<ReturnType<typeof captureKeys.listHalves>> = await captureKeys.listHalves(store, {
      after,
      limit: PAGE,
    })
    for (const { keyId: _, alias, type, ...half } of page) await open(half, captureHalfName(type, alias))
    privateHalves += page.length
    after = page.length < PAGE ? undefined : page.at(-1)?.keyId
  }
  return { dataKeys: stored.filter(({ wrapped }) => wrapped !== null).length, privateHalves }
}
