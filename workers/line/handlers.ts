// The handlers of the kinds, as the line gets them: the composition (../composition.ts) hands them down.
import type { CATALOGUE, Kind } from '../../src/job/catalogue.ts'
import type { Deps } from '../deps.ts'
import { type Complete, complete, type Handler, type Retells } from './work.ts'

type AnyHandler = Handler<unknown, unknown, unknown>

/** A kind whose stored answers the handler makes (`from: 'handler'` in the catalogue) must have `retell`. */
type HandlerFor<K extends Kind> = (typeof CATALOGUE)[K]['retell'] extends { from: 'handler' }
  ? AnyHandler & Retells
  : AnyHandler

/** A kind without an entry doesn't compile. `null`: this process refuses the kind. */
export type Handlers = { readonly [K in Kind]: HandlerFor<K> | null }

/** What the line itself gets; a handler needs no other handlers. */
export interface LineDeps extends Deps {
  handlers: Handlers
}

export function handlerOf(
  kind: Kind,
  { handlers }: Pick<LineDeps, 'handlers'>,
): Complete<unknown, unknown, unknown> | null {
  const handler: AnyHandler | null = handlers[kind]
  return handler && complete(handler)
}
