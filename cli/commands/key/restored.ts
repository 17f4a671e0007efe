// `tokenmill key restored`: says that the database was restored from a backup, or that a standby was promoted which lost an act
// on keys. Running processes then go by the stored lives of the keys again.

import { type Backward, listBackward, RESTORED, restoreLives } from '../../../src/acts/key/restore-lives.ts'
import * as installation from '../../../src/store/installation.ts'
import type { JsonOption } from '../../command.ts'
import { confirm } from '../../confirm.ts'
import { Stop } from '../../exit.ts'
import { findKeks } from '../../open/kek.ts'
import { openRingNow } from '../../open/key-ring.ts'
import { lastingLives, storedLives } from '../../open/known-lives.ts'
import { openCommandStore, withSession } from '../../open/open.ts'
import { byOf, type OperatorOptions } from '../../open/operator.ts'
import { print, say, type Terminal } from '../../terminal.ts'
import { secondOperatorOf } from './second-operator.ts'

type Options = JsonOption & OperatorOptions & { yes?: boolean }

export function restored(terminal: Terminal, options: Options): Promise<void> {
  return withSession(terminal, async session => {
    const { store, database } = await openCommandStore(session)
    const { config, log } = session
    const known = await installation.get(store)
    const { installationId } = known
    const keks = await findKeks(config, database.embedded, known)
    const of = { store, keks, installationId }
    const lives = storedLives(of)
    // The ring goes by the stored lives: an operator is believed who is in this database.
    const ring = await openRingNow(keks, store, lives)
    const seen = lastingLives(of, config.dataDir, log)
    await seen.read().catch(() => undefined)
    const later = seen.current()?.lives
    const back = later ? listBackward(later, await lives.read()) : []
    if (seen.trouble() === 'older') sayBackward(terminal, back)
    if (!options.yes) await confirm(terminal, 'Was this database restored from a backup, or a standby promoted?')
    const deed = { action: RESTORED, subject: installationId }
    const by = await byOf(deed, options, store, ring)
    const isUndestroyed = back.some(one => one.isUndestroyed)
    const second = isUndestroyed ? secondOperatorOf({ store, ring, database }, deed, by) : undefined
    const use = second?.use ?? (async () => ({ detail: {} }))
    const ended = await restoreLives({ ...of, lives }, { seen, useConfirmation: use }, by)
    if ('refused' in ended && ended.refused === 'unconfirmed' && second) return second.ask(terminal, options)
    if ('refused' in ended) throw new Stop(REFUSED[ended.refused])
    // This host goes by them from now on.
    await seen.read()
    const { epoch } = ended.done
    const value = { epoch, takes_back: back.map(({ key }) => key) }
    print(terminal, options, value, `The stored lives of the keys hold from now on, as epoch ${epoch}.`)
  })
}

function sayBackward(terminal: Terminal, back: readonly Backward[]): void {
  const listed = 'The stored lives of the keys take this back:'
  const unlisted = 'This host has not seen the later lives of the keys, so it can not list what is taken back.'
  say(terminal, back.length > 0 ? listed : unlisted)
  for (const { key } of back) say(terminal, `  ${key}`)
}

const REFUSED = {
  current: 'Nobody has seen later lives of the keys than those in this database: there is nothing to do.',
  moved: 'Another command changed the lives of the keys meanwhile; run this again.',
  unconfirmed: 'A second operator has to confirm this.',
} as const
