// AWS's client for KMS, one for each region and its limits. The package is loaded only when a key in KMS is named.
// Credentials, proxies of AWS and an endpoint other than the region's own come from AWS's usual settings.
import type { KMSClient } from '@aws-sdk/client-kms'
import { z } from 'zod'
import { KmsError } from './kms-error.ts'

export interface KmsLimits {
  /** The time limit of a connection, TLS included, ms. */
  connectMs: number
  /** The time limit of each attempt of a request, ms. */
  answerMs: number
  /** Attempts of a request, with AWS's backoff between them. */
  attempts: number
  /** The time limit of a request with all its attempts and the search for credentials, ms. */
  wholeMs: number
}

interface OpenedClient {
  client: KMSClient
  sdk: typeof import('@aws-sdk/client-kms')
}

const clients = new Map<string, Promise<OpenedClient>>()

export function openKmsClient(region: string, limits: KmsLimits): Promise<OpenedClient> {
  const name = JSON.stringify([region, limits])
  const opened = clients.get(name) ?? load(region, limits)
  clients.set(name, opened)
  // Settings that the SDK can't read are read again at the next try.
  opened.catch(() => clients.delete(name))
  return opened
}

/** Ends the connections of all clients. The next client reads the settings of AWS again. */
export async function closeKmsClients(): Promise<void> {
  const opened = [...clients.values()]
  clients.clear()
  for (const one of opened) await one.then(({ client }) => client.destroy()).catch(() => undefined)
}

async function load(region: string, { connectMs, answerMs, attempts }: KmsLimits): Promise<OpenedClient> {
  const sdk = await import('@aws-sdk/client-kms')
  const client = new sdk.KMSClient({
    region,
    maxAttempts: attempts,
    retryMode: 'standard',
    requestHandler: { connectionTimeout: connectMs, requestTimeout: answerMs, throwOnRequestTimeout: true },
  })
  client.middlewareStack.add(
    next => async args => {
      refuseClearText(args.request)
      return next(args)
    },
    { step: 'build', name: 'refuseClearText' },
  )
  return { client, sdk }
}

const Target = z.object({ protocol: z.string(), hostname: z.string() })
const LOOPBACK = ['127.0.0.1', '[::1]', '::1', 'localhost']

/** Refuses a request without TLS to another host, because the request holds a data key. */
function refuseClearText(request: unknown): void {
  const { protocol, hostname } = Target.parse(request)
  if (protocol === 'https:' || LOOPBACK.includes(hostname)) return
  throw new KmsError(
    'config',
    'the endpoint of KMS is not https: (AWS_ENDPOINT_URL_KMS or AWS_ENDPOINT_URL), so data keys would be sent in clear text',
  )
}
