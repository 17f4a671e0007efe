// `tokenmill system rotate ROLE`: replaces the key by which tokenmill's own processes of a role sign. The new key's file goes to
// every host of the role. The former key ends once a worker has verified what the new one signed; if the command is killed,
// another run goes on.
import { setTimeout as pause } from 'node:timers/promises'
import type { By } from '../../src/acts/act.ts'
import { perform } from '../../src/acts/act.ts'
import { grantClientKey, isClientGranted, isClientKeyGranted, NEW_KEY } from '../../src/acts/grants.ts'
import type { SystemClient } from '../../src/job/system-clients.ts'
import * as clients from '../../src/store/access/clients.ts'
import * as operations from '../../src/store/job/operations.ts'
import type { Db } from '../../src/store/pool.ts'
import { importPublicJwk, makeSigningKey } from '../../src/vault/client-key.ts'
import type { KeyRing } from '../../src/vault/ring/key-ring.ts'
import type { JsonOption } from '../command.ts'
import { confirm } from '../confirm.ts'
import { Stop } from '../exit.ts'
import { jsonText, writePrivate } from '../open/key-files.ts'
import { type OpenedVault, openVault, withSession } from '../open/open.ts'
import { byOf, type OperatorOptions } from '../open/operator.ts'
import { findSystemKey, retire, systemKeyPath } from '../open/system-clients.ts'
import { moment, print, say, type Terminal } from '../terminal.ts'

type Options = JsonOption & OperatorOptions & { stolen?: boolean; yes?: boolean }

const ROTATE = 'system.key.rotate'
const END = 'system.key.end'
const LOOK_MS = 1_000

export function rotate(terminal: Terminal, name: SystemClient, options: Options): Promise<void> {
  return withSession(terminal, async session => {
    const vault = await openVault(session)
    const { store, ring } = vault
    const isStolen = options.stolen === true
    if (!options.yes) await confirm(terminal, questionOf(name, isStolen))
    const by = (action: string) => byOf({ action, subject: name }, options, store, ring)
    const path = systemKeyPath(session.config.dataDir, name)
    const waiting = await findWaiting(vault, name, (await findSystemKey(session.config.dataDir, name))?.kid)
    const kid = waiting && !isStolen ? waiting : await makeKey(vault, { name, path, isStolen }, await by(ROTATE))
    if (waiting && !isStolen) say(terminal, `The key ${kid} was made before; going on with it.`)
    say(
      terminal,
      `${path} has the key ${kid}. Copy it over the former file on every host that runs the ${name}, and restart that role there.`,
    )
    if (isStolen) await sayDropped(terminal, vault, name)
    else await untilVerified(terminal, vault, { name, kid })
    const ended = isStolen ? undefined : await endFormer(vault, { name, kid }, await by(END))
    print(
      terminal,
      options,
      { client_id: name, kid, signing_key_file: path, former_until: ended === undefined ? null : moment(ended) },
      ended === undefined
        ? `${name} signs with ${kid}; its former keys are ended, within 10 s on every worker.`
        : `${name} signs with ${kid}; what its former key signed counts until ${moment(ended)}.`,
    )
  })
}

function questionOf(name: SystemClient, isStolen: boolean): string {
  return isStolen
    ? `Revoke the key of the ${name} at once? Until its hosts have the new file, nothing that they sign is done.`
    : `Replace the key of the ${name}?`
}

/** A key that an earlier run made, and that no worker has verified yet. */
async function findWaiting(
  { store }: Pick<OpenedVault, 'store'>,
  name: SystemClient,
  ownKid: string | undefined,
): Promise<string | undefined> {
  const active = (await clients.findClientKeys(store, name)).filter(({ state }) => state === 'ACTIVE')
  const newest = active.at(-1)
  return active.length > 1 && newest?.verifiedAt === null && newest.kid === ownKid ? ownKid : undefined
}

interface NewKey {
  name: SystemClient
  /** Its file. */
  path: string
  isStolen: boolean
}

async function makeKey({ store, ring }: OpenedVault, { name, path, isStolen }: NewKey, by: By): Promise<string> {
  const { privateJwk, publicJwk } = makeSigningKey()
  const { kid, alg } = importPublicJwk(publicJwk)
  const made = await perform<string, 'unknown'>(store, { action: ROTATE, subject: name }, by, async db => {
    const client = await clients.hold(db, name)
    if (!client || !isClientGranted(ring, client)) return { refused: 'unknown' }
    const active = (await clients.findClientKeys(db, name)).filter(({ state }) => state === 'ACTIVE')
    const ended = isStolen ? await endStolen(db, ring, name) : await retireOldest(db, ring, active)
    await clients.insertKey(db, { clientId: name, kid, alg, publicJwk })
    await grantClientKey(db, ring, { clientId: name, kid, alg, publicJwk, ...NEW_KEY })
    // Before the commit: a row without its file would be useless.
    await writePrivate(path, jsonText(privateJwk.reveal()), { replace: true })
    return { done: kid, detail: { kid, stolen: isStolen, ended } }
  })
  if ('done' in made) return made.done
  throw new Stop(
    `tokenmill did not write the row of ${name}, or it is missing: see \`tokenmill doctor\`, and \`tokenmill schema upgrade\`.`,
  )
}

/** Ends every key of the role that may verify something. */
async function endStolen(db: Db, ring: KeyRing, name: SystemClient): Promise<string[]> {
  const keys = (await clients.findClientKeys(db, name)).filter(({ state }) => state === 'ACTIVE' || state === 'RETIRED')
  const at = Date.now()
  for (const key of keys) {
    await clients.markStolen(db, name, key.kid, at)
    if (isClientKeyGranted(ring, key)) await grantClientKey(db, ring, { ...key, state: 'STOLEN', validUntil: at })
  }
  return keys.map(({ kid }) => kid)
}

/** Makes room for a new key. */
async function retireOldest(db: Db, ring: KeyRing, active: readonly clients.ClientKey[]): Promise<string[]> {
  const over = active.slice(0, Math.max(0, active.length + 1 - clients.ACTIVE_KEYS_MAX))
  for (const key of over) await retire(db, ring, key)
  return over.map(({ kid }) => kid)
}

interface Signing {
  name: SystemClient
  kid: string
}

async function untilVerified(terminal: Terminal, { store }: OpenedVault, { name, kid }: Signing): Promise<void> {
  for (let isTold = false; ; await pause(LOOK_MS)) {
    const key = (await clients.findClientKeys(store, name)).find(one => one.kid === kid)
    if (key?.state === 'REVOKED') throw new Stop(`The key ${kid} was revoked meanwhile; run this again.`)
    if (key && key.verifiedAt !== null) return
    if (!isTold)
      say(
        terminal,
        `Waiting until a worker has verified what the new key signed. Ctrl-C is safe: both keys are live, and another run goes on.`,
      )
    isTold = true
  }
}

/** Retires the former keys. Returns until when they verify, ms since the epoch; undefined if there is none. */
async function endFormer({ store, ring }: OpenedVault, { name, kid }: Signing, by: By): Promise<number | undefined> {
  let until: number | undefined
  await perform<true, never>(store, { action: END, subject: name }, by, async db => {
    await clients.hold(db, name)
    const former = (await clients.findClientKeys(db, name)).filter(key => key.state === 'ACTIVE' && key.kid !== kid)
    for (const key of former) until = await retire(db, ring, key)
    return { done: true, detail: { kids: former.map(key => key.kid), until: until && moment(until) } }
  })
  return until
}

async function sayDropped(terminal: Terminal, { store }: OpenedVault, name: SystemClient): Promise<void> {
  say(
    terminal,
    'What the former keys signed and no worker has taken is dropped. Workers count it (tokenmill_jobs_dropped_total), and `tokenmill status` names it.',
  )
  if (name !== 'gateway') return
  const { rows } = await operations.measure(store)
  say(
    terminal,
    `${rows.toLocaleString('en')} operations wait for an answer. Reversals that the former keys signed before now are done where a worker has verified the request that they undo; \`tokenmill system reversals\` lists later ones, which are done only if you confirm them.`,
  )
}
