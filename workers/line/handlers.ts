// The handlers of the kinds, as the line gets them: the composition (../composition.ts) hands them down.
import type { KindEntry } from '../../src/job/catalogue.ts'
import { type Complete, complete, type Handler, type Retells } from '../work.ts'

type AnyHandler = Handler<unknown, unknown, unknown>

/** A kind whose stored answers the handler makes (`from: 'handler'` in the catalogue) must have `retell`. */
type HandlerFor<Entry extends KindEntry> = Entry['retell'] extends { from: 'handler' }
  ? AnyHandler & Retells
  : AnyHandler

/** The handlers of these kinds: one that is missing doesn't compile. */
export type HandlersOf<Kinds extends Readonly<Record<string, KindEntry>>> = {
  readonly [K in keyof Kinds]: HandlerFor<Kinds[K]> | null
}

/** By kind. `null`: this process refuses the kind. */
export type Handlers = Readonly<Record<string, AnyHandler | null>>

export function handlerOf(
  kind: string,
  { handlers }: { handlers: Handlers },
): Complete<unknown, unknown, unknown> | null {
  const handler = handlers[kind]
  return handler ? complete(handler) : null
}
