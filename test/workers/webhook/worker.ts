// A worker process with short delays between the attempts at a webhook.
import { fileURLToPath } from 'node:url'
import { runWorkerProcess } from '../../../cli/process/worker-process.ts'
import { QUICK } from './quick.ts'

await runWorkerProcess({ script: fileURLToPath(import.meta.url), webhooks: QUICK })
