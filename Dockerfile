# The workers and the scheduler, and every command, for an installation with a PostgreSQL of its own. Optional packages
# are left out: the embedded PostgreSQL and a second Node. No key and no password is in the image.
FROM node:24-slim AS packages
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --omit=dev --omit=optional --no-audit --no-fund

FROM node:24-slim
WORKDIR /app
COPY --from=packages /app/node_modules node_modules
COPY package.json ./
COPY bin bin
COPY cli cli
COPY src src
COPY producers producers
COPY workers workers
RUN install -d -o node -g node -m 0700 /data /keys /logins /console
ENV NODE_ENV=production TOKENMILL_DATA_DIR=/data
USER node
ENTRYPOINT ["node", "bin/tokenmill.mjs"]
CMD ["--help"]
