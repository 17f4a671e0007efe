// Replaces a data key, for several commands: makes a new version, waits until every live process that needs it has
// loaded it, and lets it take the place of the former one. If the command was killed, the next call continues with the
// version that was made.
import { setTimeout as pause } from 'node:timers/promises'
import type { By } from '../../../src/acts/act.ts'
import {
  beginRotation,
  finishRotation,
  isDropped,
  listLacking,
  listLackingGateways,
  type WithoutGateways,
} from '../../../src/acts/key/key-rotation.ts'
import { shareKeys } from '../../../src/acts/role-keys.ts'
import type { LivesKeeper } from '../../../src/acts/turn-lives.ts'
import type { ProcessRow } from '../../../src/store/access/processes.ts'
import { LostRace } from '../../../src/store/pool.ts'
import { duration } from '../../../src/units.ts'
import type { Purpose } from '../../../src/vault/ring/key-ring.ts'
import { Stop } from '../../exit.ts'
import type { OpenedVault } from '../../open/open.ts'
import { say, type Terminal } from '../../terminal.ts'

const ASK_MS = 500
/** A line names no more gateways: whoever has one of their hosts could make any number. */
const NAMED_MAX = 5

export interface Turned {
  version: number
  former: number
}

export async function turnDataKey(
  terminal: Terminal,
  vault: LivesKeeper & Pick<OpenedVault, 'ring'>,
  { purpose, without }: Pick<Turning, 'purpose' | 'without'>,
  by: By,
): Promise<Turned> {
  const { store, ring } = vault
  const begun = await beginRotation(vault, purpose, by).catch(stopAfterRace)
  const { version, former, isNew } = begun
  const name = `${purpose}/${version}`
  say(terminal, isNew ? `${name} is made.` : `${name} was made before; going on with it.`)
  await ring.refresh()
  const { foreign } = await shareKeys(store, ring)
  for (const kid of foreign)
    say(terminal, `The key ${kid} of a gateway was not written by tokenmill, and gets nothing (table role_key).`)
  await finish(terminal, vault, { purpose, version, without }, by)
  // What a command does after this uses the new version.
  await ring.refresh()
  return { version, former }
}

export function stopAfterRace(error: unknown): never {
  if (error instanceof LostRace) throw new Stop('the key-encryption key was replaced meanwhile; run this again.')
  throw error
}

export async function refuseDropped(
  keeper: Pick<LivesKeeper, 'lives'>,
  purpose: Purpose,
  version: number,
): Promise<void> {
  if (await isDropped(keeper, purpose, version))
    throw new Stop(
      `${purpose}/${version} was dropped meanwhile, because somebody else may have it (\`tokenmill key compromise\`); it never came into use.`,
    )
}

interface Turning {
  purpose: Purpose
  version: number
  /** Gateways for which it doesn't wait. */
  without: WithoutGateways
}

/** Waits for all processes, and puts the new version into use. */
async function finish(terminal: Terminal, vault: LivesKeeper, turning: Turning, by: By): Promise<void> {
  const { store } = vault
  const { purpose, version, without } = turning
  for (let told = ''; ; await pause(ASK_MS)) {
    await refuseDropped(vault, purpose, version)
    const gateways = await listLackingGateways(store, turning, without)
    const lacking = [...(await listLacking(store, purpose, version)), ...gateways]
    if (lacking.length === 0) {
      const ended = await finishRotation(vault, turning, by)
      if ('done' in ended) return
      if (ended.refused === 'finished') return refuseDropped(vault, purpose, version)
      continue
    }
    const line = `Waiting for ${lacking.length} ${lacking.length === 1 ? 'process' : 'processes'} to load it: ${namesOf(lacking)}.`
    if (line !== told) {
      say(terminal, line)
      if (gateways.length > 0) say(terminal, gatewaysText(gateways))
    }
    told = line
  }
}

/** Which gateways are waited for, and how to go on without them. */
function gatewaysText(gateways: readonly ProcessRow[]): string {
  const named = gateways
    .slice(0, NAMED_MAX)
    .map(({ processId, host, silentMs }) => `${processId} (${host}, seen ${duration(silentMs)} ago)`)
  const more = gateways.length - named.length
  const list = `${named.join(', ')}${more > 0 ? ` and ${more} more` : ''}`
  return [
    'A gateway loads it within 5 s if its host has the file system/gateway-keys.jwk of `tokenmill schema upgrade`.',
    `Not yet: ${list}.`,
    'To go on without one of them, run this again with --without and its id, or with --without all.',
  ].join(' ')
}

/** The processes by host: `a (interactive, 2 bulk), b (three-ds)`. */
export function namesOf(rows: readonly ProcessRow[]): string {
  const hosts = Map.groupBy(rows, row => row.host)
  return [...hosts]
    .map(([host, here]) => {
      const roles = Map.groupBy(here, row => row.role)
      const said = [...roles].map(([role, those]) => (those.length > 1 ? `${those.length} ${role}` : role))
      return `${host} (${said.join(', ')})`
    })
    .join(', ')
}
