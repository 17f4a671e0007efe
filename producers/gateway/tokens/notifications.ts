// The route of lifecycle notifications from scheme token networks. Only the names of the tokens are stored; a worker
// then asks the network for their state, so that repeated, late or false notifications do no harm. The network has
// credentials of its own.
import { z } from 'zod'
import type { Notification } from '../../../src/scheme/notification.ts'
import * as schemeNotices from '../../../src/store/provider/scheme-notices.ts'
import type { RoutePlugin } from '../deps.ts'
import { OWN_BUCKET } from '../server/access.ts'
import { declineFor, unauthenticated } from '../server/error-bodies.ts'
import { decline } from '../server/replies.ts'
import { ERRORS } from './records.ts'

const Noted = z.strictObject({ responseId: z.string() })

export interface Notifications {
  /** The network's name, in the URL's path and in the store. */
  provider: string
  /** Reads a request's `authorization` and body: whether the network sent the request, and which tokens it names. */
  read(authorization: string | undefined, body: unknown): Notification
}

export function notificationRoute({ provider, read }: Notifications): RoutePlugin {
  return (app, { store, clock }) => {
    app.route({
      method: 'POST',
      url: `/oidc/scheme-notifications/${provider}`,
      config: { access: 'public', rateLimit: OWN_BUCKET },
      schema: {
        operationId: 'notifyTokenUpdated',
        summary: 'A network tells that something happened to scheme tokens',
        tags: ['Scheme tokens'],
        body: z.looseObject({}).describe("The network's own request: an encrypted payload."),
        response: { 200: Noted, 400: ERRORS[400], 401: ERRORS[401], 429: ERRORS[429], 500: ERRORS[500] },
      },
      handler: async ({ headers, body }, reply) => {
        const notification = read(headers.authorization, body)
        if (notification.notified === 'unauthenticated') return decline(reply, unauthenticated())
        if (notification.notified !== 'tokens') return decline(reply, declineFor('field_format', 'body'))
        const references = notification.tokens.map(token => token.reference)
        await schemeNotices.insertAll(store, provider, references, clock())
        return reply.code(200).send({ responseId: notification.requestId })
      },
    })
  }
}
