// The types of the console's HTTP application: who a request's person is, and which routes need none.
import type { FastifyInstance } from 'fastify'
import type { LiveDisplay } from '../../src/store/console/installation/displays.ts'
import type { LiveSession } from '../../src/store/console/sessions.ts'
import type { ConsoleDeps } from './deps.ts'

export type ConsoleApp = FastifyInstance

/** A function that adds routes; routes.ts lists them. */
export type ConsoleRoutes = (app: ConsoleApp, deps: ConsoleDeps) => void

declare module 'fastify' {
  interface FastifyInstance {
    /** The page of this console to which a sign-in leads: a path of its own, whatever was asked for. */
    destinationOf(asked: unknown): string
  }
  interface FastifyRequest {
    /** Null on routes that are open. */
    session: LiveSession | null
    /** Null on all routes but those of wall displays. */
    display: LiveDisplay | null
  }
  interface FastifyContextConfig {
    /** Without a session: the way in, and the files of every page. */
    isOpen?: true
    /** A request by which the session doesn't last longer: of a page that asks for itself again. */
    isUncounted?: true
    /** For a wall display, and for nobody else: a session doesn't open it, and a display opens nothing else. */
    isDisplay?: true
  }
}

/** The config of a route that needs no session. */
export const OPEN = { config: { isOpen: true } } as const

/** The config of a route whose requests leave the session as old as it is. */
export const UNCOUNTED = { config: { isUncounted: true } } as const
