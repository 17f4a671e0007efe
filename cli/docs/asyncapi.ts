// The queues as an AsyncAPI 3 document, as tokenmill sees them: it receives jobs and sends results. It describes the
// queues and their content; the rules of the envelope are in docs/upstream.md.
import { CATALOGUE } from '../../src/job/composition.ts'

const VERSION = '1.0.0'

const reference = (path: string) => ({ $ref: path })

export function asyncApi(): object {
  return {
    asyncapi: '3.0.0',
    info: {
      title: 'tokenmill',
      version: VERSION,
      description:
        'Card-token work through queues. Each channel is a BullMQ queue under the key prefix of the installation; a job is named as its queue.',
    },
    defaultContentType: 'application/json',
    servers: {
      queues: {
        host: '{host}',
        protocol: 'redis',
        description: 'Redis with BullMQ 6.',
        variables: { host: { default: 'localhost:6379' } },
      },
    },
    channels: { ...Object.fromEntries(CATALOGUE.kinds.map(kind => [kind, kindChannel(kind)])), ...resultChannels() },
    operations: {
      ...Object.fromEntries(CATALOGUE.kinds.map(kind => [`receive-${kind}`, receive(kind)])),
      'send-results': {
        action: 'send',
        channel: reference('#/channels/results'),
        messages: [reference('#/channels/results/messages/delivery')],
      },
      'send-results-to-reply-queue': {
        action: 'send',
        channel: reference('#/channels/results-reply'),
        messages: [reference('#/channels/results-reply/messages/delivery')],
      },
    },
    components: {
      messages: { ...Object.fromEntries(CATALOGUE.kinds.map(kind => [kind, jobMessage(kind)])), delivery: delivery() },
    },
  }
}

function kindChannel(kind: string): object {
  return {
    address: kind,
    description: CATALOGUE.entry(kind).description,
    messages: { job: reference(`#/components/messages/${kind}`) },
  }
}

function resultChannels(): Record<string, object> {
  const client = { client_id: { description: 'The client, as registered.' } }
  const messages = { delivery: reference('#/components/messages/delivery') }
  return {
    results: {
      address: 'results-{client_id}',
      description: 'Every result and event of a client, at least once. A consumer acknowledges by completing the job.',
      parameters: client,
      messages,
    },
    'results-reply': {
      address: 'results-{client_id}-{reply_to}',
      description: 'Results of the jobs whose envelope names this reply_to.',
      parameters: { ...client, reply_to: { description: '1 to 32 of a-z and 0-9.' } },
      messages,
    },
  }
}

function receive(kind: string): object {
  return {
    action: 'receive',
    channel: reference(`#/channels/${kind}`),
    messages: [reference(`#/channels/${kind}/messages/job`)],
    reply: {
      channel: reference('#/channels/results'),
      messages: [reference('#/channels/results/messages/delivery')],
    },
    ...(CATALOGUE.entry(kind).systemOnly && { description: 'System clients only.' }),
  }
}

function jobMessage(kind: string): object {
  return {
    name: kind,
    title: `${kind} job`,
    contentType: 'application/json',
    payload: reference('./schema/job.json'),
    // The payload of the JWS. The schema of a message can't describe it, because it is encoded.
    'x-jws-payload': reference('./schema/envelope.json'),
    'x-request': reference(`./schema/${kind}.json`),
    ...(CATALOGUE.entry(kind).hasBlock && { 'x-block-line': reference('./schema/record.json') }),
    // The first line of a block whose protected header has `form: columns`; the others are records.
    ...(kind === 'token-batch' && { 'x-block-columns': reference('./schema/record-columns.json') }),
  }
}

function delivery(): object {
  return {
    name: 'delivery',
    title: 'result or event',
    contentType: 'application/json',
    payload: reference('./schema/delivery.json'),
    'x-body': {
      oneOf: [
        reference('./schema/result.json'),
        reference('./schema/event.json'),
        reference('./schema/result-set.json'),
      ],
    },
    // The member `columns` of a result, whose JWS then has the `typ` tokenmill-result-columns+jwt.
    'x-result-columns': reference('./schema/created-columns.json'),
  }
}
