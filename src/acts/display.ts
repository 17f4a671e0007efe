// Adds and revokes wall displays. The value in a display's link is its only credential: whoever has it sees what the display shows,
// and nothing else.
import { hash, randomBytes, randomUUID } from 'node:crypto'
import type { Display } from '../store/person/displays.ts'
import * as displays from '../store/person/displays.ts'
import type { Store } from '../store/pool.ts'
import { type ActResult, type By, perform } from './act.ts'

export const ADD_DISPLAY = 'display.add'
export const REVOKE_DISPLAY = 'display.revoke'

export interface AddedDisplay extends Pick<Display, 'displayId' | 'expiresAt'> {
  /** 32 random bytes, base64url. They are in the link and nowhere else. */
  value: string
}

/** `known`: a display of this name is there and isn't revoked. */
export function addDisplay(
  store: Store,
  { name, entities }: Pick<Display, 'name' | 'entities'>,
  by: By,
): Promise<ActResult<AddedDisplay, 'known'>> {
  return perform(store, { action: ADD_DISPLAY, subject: name }, by, async db => {
    const value = randomBytes(32).toString('base64url')
    const display = { displayId: randomUUID(), name, entities, madeBy: `${by.actor.kind}:${by.actor.id}` }
    const expiresAt = await displays.insert(db, { ...display, linkHash: hash('sha256', value, 'buffer') })
    if (expiresAt === undefined) return { refused: 'known' }
    const { displayId } = display
    return { done: { displayId, value, expiresAt }, detail: { display_id: displayId, entities } }
  })
}

/** Its pages answer as if it had never been, and its streams end within two seconds. */
export function revokeDisplay(
  store: Store,
  { displayId, name }: Pick<Display, 'displayId' | 'name'>,
  by: By,
): Promise<ActResult<undefined, 'revoked'>> {
  return perform(store, { action: REVOKE_DISPLAY, subject: displayId }, by, async db =>
    (await displays.revoke(db, displayId)) ? { done: undefined, detail: { name } } : { refused: 'revoked' },
  )
}
