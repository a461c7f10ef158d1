-- What wrk sends, and what it prints at the end. Arguments: a seed, and the file with the requests: method,
-- path and body in a line, with tabs between them. An @ in a path is a new UUID each time.
-- PAUSE_MS: how long a connection waits after each answer.

local threads = 0
local requests = {}
local turn = 0
local random, format = math.random, string.format
local pause = tonumber(os.getenv("PAUSE_MS"))

if pause > 0 then
  function delay()
    return pause
  end
end

function setup(thread)
  thread:set("number", threads)
  threads = threads + 1
end

local function uuid()
  return format("%08x-%04x-4%03x-8%03x-%06x%06x", random(0, 4294967295), random(0, 65535),
    random(0, 4095), random(0, 4095), random(0, 16777215), random(0, 16777215))
end

function init(args)
  math.randomseed(tonumber(args[1]) + number)
  for line in io.lines(args[2]) do
    local method, path, body = line:match("^(%S+)\t(%S+)\t(.*)$")
    if body == "" then body = nil end
    local whole = wrk.format(method, path, nil, body)
    if path:find("@", 1, true) then
      local at = whole:find("@", 1, true)
      requests[#requests + 1] = { whole:sub(1, at - 1), whole:sub(at + 1) }
    else
      requests[#requests + 1] = { whole }
    end
  end
  -- Threads do not all begin with the same request.
  turn = random(0, #requests - 1)
end

function request()
  turn = turn % #requests + 1
  local it = requests[turn]
  if it[2] then
    return it[1] .. uuid() .. it[2]
  end
  return it[1]
end

-- Requests, microseconds and errors, then latencies in microseconds, each with the requests that it stands for.
function done(summary, latency)
  local errors = summary.errors
  io.write(format("\nmeasured %d %d %d\n", summary.requests, summary.duration,
    errors.connect + errors.read + errors.write + errors.timeout + errors.status))
  local function at(percent, share)
    io.write(format("latency %d %f\n", latency:percentile(percent), share * summary.requests))
  end
  for percent = 0, 98 do
    at(percent + 0.5, 0.01)
  end
  for part = 0, 99 do
    at(99 + (part + 0.5) / 100, 0.0001)
  end
end
