// Opens a real gateway for an installation, and calls it over HTTP. Every answer is checked against the OpenAPI
// document that the gateway serves.
import { readFile } from 'node:fs/promises'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import { openSession } from '../../../cli/open/open.ts'
import { serveGateway } from '../../../cli/process/gateway.ts'
import type { Credentials } from '../../../producers/client/client-file.ts'
import type { Gateway } from '../../../producers/gateway/main.ts'
import { encryptCard } from '../../../src/vault/capture/encrypt.ts'
import type { Installation } from '../../support/installation.ts'

export interface Answer {
  status: number
  headers: Headers
  text: string
  /** The body as JSON; an empty object for none. */
  body: Record<string, unknown>
}

export interface CallOptions {
  /** Default: the Basic credentials of the installation's first client; null: no credentials. */
  authorization?: string | null
  headers?: Record<string, string>
  /** JSON, unless it is a text. */
  body?: unknown
  signal?: AbortSignal
}

export interface Caller {
  gateway: Gateway
  url: string
  call(method: string, path: string, options?: CallOptions): Promise<Answer>
  /** Encrypts a card and makes a PUT with it. */
  put(card: Record<string, unknown>, fields?: Record<string, unknown>, options?: CallOptions): Promise<Answer>
  authorization: string
  close(): Promise<void>
}

export const CARD = '/oidc/api/v2/card'
export const BATCHES = '/oidc/api/v2/batches'

/** The Basic credentials in a client's file. */
export async function basicOf(clientFile: string): Promise<string> {
  const file = JSON.parse(await readFile(clientFile, 'utf8')) as { user_id: string; api_key: string }
  return `Basic ${Buffer.from(`${file.user_id}:${file.api_key}`).toString('base64')}`
}

export async function encrypted(card: Record<string, unknown>, { captureKeys }: Pick<Credentials, 'captureKeys'>) {
  const key = captureKeys.jwe
  if (!key) throw new Error('the test client has a JWE key')
  return {
    encrypted_card: await encryptCard({ captureTime: new Date().toISOString(), ...card }, key),
    public_key_alias: key.alias,
  }
}

export async function openGatewayFor(
  installation: Installation,
  settings: Record<string, string> = {},
): Promise<Caller> {
  // Long, so that a slow machine answers, too.
  const patience = { TOKENMILL_GATEWAY_TIMEOUT_SECONDS: '200' }
  const env = { ...installation.env, TOKENMILL_HTTP_PORT: '0', ...patience, ...settings }
  const session = openSession({ env, stdin: process.stdin, stdout: process.stdout, stderr: process.stderr }, 'gateway')
  const gateway = await serveGateway(session)
  const url = `http://127.0.0.1:${gateway.port}`
  const authorization = await basicOf(installation.clientFile)
  const call = await openCalls(url, authorization)
  return {
    gateway,
    url,
    call,
    authorization,
    put: async (card, fields = {}, options = {}) =>
      call('PUT', CARD, {
        ...options,
        body: { token_scope: installation.scope, ...(await encrypted(card, installation.credentials)), ...fields },
      }),
    close: () => session.lifetime.close(),
  }
}

/** Makes calls to an HTTP process; each answer is checked against the document that the process serves. */
export async function openCalls(url: string, authorization: string): Promise<Caller['call']> {
  const judge = judgeOf((await (await fetch(`${url}/openapi.json`)).json()) as OpenApi)

  return async (method, path, options = {}) => {
    const { authorization: given = authorization, headers = {}, body, signal } = options
    const answer = await fetch(`${url}${path}`, {
      method,
      headers: {
        ...(given === null ? {} : { authorization: given }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      ...(signal ? { signal } : {}),
    })
    const text = await answer.text()
    const isJson = answer.headers.get('content-type')?.startsWith('application/json') ?? false
    const parsed = isJson && text !== '' ? (JSON.parse(text) as Record<string, unknown>) : {}
    judge(method, path, answer.status, text === '' ? undefined : parsed)
    return { status: answer.status, headers: answer.headers, text, body: parsed }
  }
}

interface OpenApi {
  paths: Record<
    string,
    Record<string, { responses?: Record<string, { content?: Record<string, { schema: object }> }> }>
  >
}

/**
 * Returns a function that throws if an answer isn't as the document says. A path that isn't in the document must give a
 * 404 with an error body.
 */
function judgeOf(document: OpenApi): (method: string, path: string, status: number, body: unknown) => void {
  const ajv = new Ajv2020({ strict: false, validateFormats: false, allErrors: true })
  const compiled = new Map<object, ValidateFunction>()
  const templates = Object.entries(document.paths).map(([path, operations]) => ({
    pattern: new RegExp(`^${path.replace(/[.]/g, '\\.').replace(/\{[^}]+\}/g, '[^/]+')}$`),
    operations,
  }))
  return (method, path, status, body) => {
    const plain = path.split('?')[0] ?? ''
    const operation = templates.find(({ pattern }) => pattern.test(plain))?.operations[method.toLowerCase()]
    if (!operation) return
    const response = operation.responses?.[status]
    if (!response) throw new Error(`the document knows no ${status} of ${method} ${plain}`)
    const schema = response.content?.['application/json']?.schema
    if (!schema) {
      if (body !== undefined && response.content === undefined)
        throw new Error(`${method} ${plain} answers ${status} with a body`)
      return
    }
    const validate = compiled.get(schema) ?? ajv.compile(schema)
    compiled.set(schema, validate)
    if (!validate(body))
      throw new Error(`${method} ${plain} ${status} is not as documented: ${ajv.errorsText(validate.errors)}`)
  }
}
