// The route of lifecycle notifications from scheme token networks. Only the names of the tokens are stored; a worker
// then asks the network for their state, so that repeated, late or false notifications do no harm. The network has
// credentials of its own.
import { z } from 'zod'
import { failureFor } from '../../../src/job/problem.ts'
import type { Notification } from '../../../src/scheme/notification.ts'
import * as schemeNotices from '../../../src/store/provider/scheme-notices.ts'
import { ERRORS } from '../../http/messages/cards.ts'
import type { GatewayApp } from '../app.ts'
import type { GatewayDeps, GatewayService } from '../deps.ts'
import { type DocumentNotes, json } from '../document/notes.ts'
import { unauthenticated } from '../error-bodies.ts'
import { OWN_BUCKET } from '../server/access.ts'
import { decline } from '../server/replies.ts'

const Noted = z.strictObject({ responseId: z.string() })

export interface Notifications {
  /** The network's name, in the URL's path and in the store. */
  provider: string
  /** Reads a request's `authorization` and body: whether the network sent the request, and which tokens it names. */
  read(authorization: string | undefined, body: unknown): Notification
}

/** The service of networks. `notifications`: undefined if no network is set up; then there is no route. */
export function notificationService(notifications: Notifications | undefined): GatewayService {
  return { notes: NOTES, routes: notifications ? [(app, deps) => addRoute(app, deps, notifications)] : [] }
}

function addRoute(app: GatewayApp, { store, clock }: GatewayDeps, { provider, read }: Notifications): void {
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
      if (notification.notified !== 'tokens') return decline(reply, failureFor('field_format', 'body'))
      const references = notification.tokens.map(token => token.reference)
      await schemeNotices.insertAll(store, provider, references, clock())
      return reply.code(200).send({ responseId: notification.requestId })
    },
  })
}

const NOTES: DocumentNotes = {
  tags: [{ name: 'Scheme tokens', description: 'What card networks tell of scheme tokens.' }],
  properties: { responseId: '`requestId` of the notification.' },
  operations: {
    notifyTokenUpdated: {
      description:
        'Called by the card network, with a secret of its own as Bearer. What it says is only noted; a worker then asks the network how the tokens stand.',
      body: json({
        notification: {
          requestId: '9b1c6f0e-5a4d-4f7e-8c3b-2a1d0e9f8c7b',
          encryptedPayload: {
            encryptedData: '5f3c…',
            encryptedKey: '8a1b…',
            iv: '0c2d…',
            oaepHashingAlgorithm: 'SHA256',
          },
        },
      }),
      answers: {
        200: {
          description: 'Noted.',
          examples: json({ noted: { responseId: '9b1c6f0e-5a4d-4f7e-8c3b-2a1d0e9f8c7b' } }),
        },
      },
      refusals: { 400: ['field_format', 'body'] },
    },
  },
}
