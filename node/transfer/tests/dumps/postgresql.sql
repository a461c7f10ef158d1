--
-- PostgreSQL database dump
--

\restrict aUMf8jiv8c0yQbXNBLGXrqkjyBCufQaK8LvHUiahsGmhO97gaPepzYL7Fho3UBd

-- Dumped from database version 15.18 (Debian 15.18-0+deb12u1)
-- Dumped by pg_dump version 15.18 (Debian 15.18-0+deb12u1)

SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

SET default_tablespace = '';

SET default_table_access_method = heap;

--
-- Name: alembic_version; Type: TABLE; Schema: public; Owner: postgres
--

CREATE TABLE public.alembic_version (
    version_num character varying(32) NOT NULL
);


ALTER TABLE public.alembic_version OWNER TO postgres;

--
-- Name: allocations; Type: TABLE; Schema: public; Owner: postgres
--

CREATE TABLE public.allocations (
    created_at timestamp without time zone,
    updated_at timestamp without time zone,
    id integer NOT NULL,
    resource_provider_id integer NOT NULL,
    consumer_id character varying(36) NOT NULL,
    resource_class_id integer NOT NULL,
    used integer NOT NULL
);


ALTER TABLE public.allocations OWNER TO postgres;

--
-- Name: allocations_id_seq; Type: SEQUENCE; Schema: public; Owner: postgres
--

CREATE SEQUENCE public.allocations_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


ALTER TABLE public.allocations_id_seq OWNER TO postgres;

--
-- Name: allocations_id_seq; Type: SEQUENCE OWNED BY; Schema: public; Owner: postgres
--

ALTER SEQUENCE public.allocations_id_seq OWNED BY public.allocations.id;


--
-- Name: consumer_types; Type: TABLE; Schema: public; Owner: postgres
--

CREATE TABLE public.consumer_types (
    created_at timestamp without time zone,
    updated_at timestamp without time zone,
    id integer NOT NULL,
    name character varying(255) NOT NULL
);


ALTER TABLE public.consumer_types OWNER TO postgres;

--
-- Name: consumer_types_id_seq; Type: SEQUENCE; Schema: public; Owner: postgres
--

CREATE SEQUENCE public.consumer_types_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


ALTER TABLE public.consumer_types_id_seq OWNER TO postgres;

--
-- Name: consumer_types_id_seq; Type: SEQUENCE OWNED BY; Schema: public; Owner: postgres
--

ALTER SEQUENCE public.consumer_types_id_seq OWNED BY public.consumer_types.id;


--
-- Name: consumers; Type: TABLE; Schema: public; Owner: postgres
--

CREATE TABLE public.consumers (
    created_at timestamp without time zone,
    updated_at timestamp without time zone,
    id integer NOT NULL,
    uuid character varying(36) NOT NULL,
    project_id integer NOT NULL,
    user_id integer NOT NULL,
    generation integer DEFAULT 0 NOT NULL,
    consumer_type_id integer
);


ALTER TABLE public.consumers OWNER TO postgres;

--
-- Name: consumers_id_seq; Type: SEQUENCE; Schema: public; Owner: postgres
--

CREATE SEQUENCE public.consumers_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


ALTER TABLE public.consumers_id_seq OWNER TO postgres;

--
-- Name: consumers_id_seq; Type: SEQUENCE OWNED BY; Schema: public; Owner: postgres
--

ALTER SEQUENCE public.consumers_id_seq OWNED BY public.consumers.id;


--
-- Name: inventories; Type: TABLE; Schema: public; Owner: postgres
--

CREATE TABLE public.inventories (
    created_at timestamp without time zone,
    updated_at timestamp without time zone,
    id integer NOT NULL,
    resource_provider_id integer NOT NULL,
    resource_class_id integer NOT NULL,
    total integer NOT NULL,
    reserved integer NOT NULL,
    min_unit integer NOT NULL,
    max_unit integer NOT NULL,
    step_size integer NOT NULL,
    allocation_ratio double precision NOT NULL
);


ALTER TABLE public.inventories OWNER TO postgres;

--
-- Name: inventories_id_seq; Type: SEQUENCE; Schema: public; Owner: postgres
--

CREATE SEQUENCE public.inventories_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


ALTER TABLE public.inventories_id_seq OWNER TO postgres;

--
-- Name: inventories_id_seq; Type: SEQUENCE OWNED BY; Schema: public; Owner: postgres
--

ALTER SEQUENCE public.inventories_id_seq OWNED BY public.inventories.id;


--
-- Name: placement_aggregates; Type: TABLE; Schema: public; Owner: postgres
--

CREATE TABLE public.placement_aggregates (
    created_at timestamp without time zone,
    updated_at timestamp without time zone,
    id integer NOT NULL,
    uuid character varying(36)
);


ALTER TABLE public.placement_aggregates OWNER TO postgres;

--
-- Name: placement_aggregates_id_seq; Type: SEQUENCE; Schema: public; Owner: postgres
--

CREATE SEQUENCE public.placement_aggregates_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


ALTER TABLE public.placement_aggregates_id_seq OWNER TO postgres;

--
-- Name: placement_aggregates_id_seq; Type: SEQUENCE OWNED BY; Schema: public; Owner: postgres
--

ALTER SEQUENCE public.placement_aggregates_id_seq OWNED BY public.placement_aggregates.id;


--
-- Name: projects; Type: TABLE; Schema: public; Owner: postgres
--

CREATE TABLE public.projects (
    created_at timestamp without time zone,
    updated_at timestamp without time zone,
    id integer NOT NULL,
    external_id character varying(255) NOT NULL
);


ALTER TABLE public.projects OWNER TO postgres;

--
-- Name: projects_id_seq; Type: SEQUENCE; Schema: public; Owner: postgres
--

CREATE SEQUENCE public.projects_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


ALTER TABLE public.projects_id_seq OWNER TO postgres;

--
-- Name: projects_id_seq; Type: SEQUENCE OWNED BY; Schema: public; Owner: postgres
--

ALTER SEQUENCE public.projects_id_seq OWNED BY public.projects.id;


--
-- Name: resource_classes; Type: TABLE; Schema: public; Owner: postgres
--

CREATE TABLE public.resource_classes (
    created_at timestamp without time zone,
    updated_at timestamp without time zone,
    id integer NOT NULL,
    name character varying(255) NOT NULL
);


ALTER TABLE public.resource_classes OWNER TO postgres;

--
-- Name: resource_classes_id_seq; Type: SEQUENCE; Schema: public; Owner: postgres
--

CREATE SEQUENCE public.resource_classes_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


ALTER TABLE public.resource_classes_id_seq OWNER TO postgres;

--
-- Name: resource_classes_id_seq; Type: SEQUENCE OWNED BY; Schema: public; Owner: postgres
--

ALTER SEQUENCE public.resource_classes_id_seq OWNED BY public.resource_classes.id;


--
-- Name: resource_provider_aggregates; Type: TABLE; Schema: public; Owner: postgres
--

CREATE TABLE public.resource_provider_aggregates (
    created_at timestamp without time zone,
    updated_at timestamp without time zone,
    resource_provider_id integer NOT NULL,
    aggregate_id integer NOT NULL
);


ALTER TABLE public.resource_provider_aggregates OWNER TO postgres;

--
-- Name: resource_provider_traits; Type: TABLE; Schema: public; Owner: postgres
--

CREATE TABLE public.resource_provider_traits (
    created_at timestamp without time zone,
    updated_at timestamp without time zone,
    trait_id integer NOT NULL,
    resource_provider_id integer NOT NULL
);


ALTER TABLE public.resource_provider_traits OWNER TO postgres;

--
-- Name: resource_providers; Type: TABLE; Schema: public; Owner: postgres
--

CREATE TABLE public.resource_providers (
    created_at timestamp without time zone,
    updated_at timestamp without time zone,
    id integer NOT NULL,
    uuid character varying(36) NOT NULL,
    name character varying(200),
    generation integer,
    root_provider_id integer,
    parent_provider_id integer
);


ALTER TABLE public.resource_providers OWNER TO postgres;

--
-- Name: resource_providers_id_seq; Type: SEQUENCE; Schema: public; Owner: postgres
--

CREATE SEQUENCE public.resource_providers_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


ALTER TABLE public.resource_providers_id_seq OWNER TO postgres;

--
-- Name: resource_providers_id_seq; Type: SEQUENCE OWNED BY; Schema: public; Owner: postgres
--

ALTER SEQUENCE public.resource_providers_id_seq OWNED BY public.resource_providers.id;


--
-- Name: traits; Type: TABLE; Schema: public; Owner: postgres
--

CREATE TABLE public.traits (
    created_at timestamp without time zone,
    updated_at timestamp without time zone,
    id integer NOT NULL,
    name character varying(255) NOT NULL
);


ALTER TABLE public.traits OWNER TO postgres;

--
-- Name: traits_id_seq; Type: SEQUENCE; Schema: public; Owner: postgres
--

CREATE SEQUENCE public.traits_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


ALTER TABLE public.traits_id_seq OWNER TO postgres;

--
-- Name: traits_id_seq; Type: SEQUENCE OWNED BY; Schema: public; Owner: postgres
--

ALTER SEQUENCE public.traits_id_seq OWNED BY public.traits.id;


--
-- Name: users; Type: TABLE; Schema: public; Owner: postgres
--

CREATE TABLE public.users (
    created_at timestamp without time zone,
    updated_at timestamp without time zone,
    id integer NOT NULL,
    external_id character varying(255) NOT NULL
);


ALTER TABLE public.users OWNER TO postgres;

--
-- Name: users_id_seq; Type: SEQUENCE; Schema: public; Owner: postgres
--

CREATE SEQUENCE public.users_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


ALTER TABLE public.users_id_seq OWNER TO postgres;

--
-- Name: users_id_seq; Type: SEQUENCE OWNED BY; Schema: public; Owner: postgres
--

ALTER SEQUENCE public.users_id_seq OWNED BY public.users.id;


--
-- Name: allocations id; Type: DEFAULT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.allocations ALTER COLUMN id SET DEFAULT nextval('public.allocations_id_seq'::regclass);


--
-- Name: consumer_types id; Type: DEFAULT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.consumer_types ALTER COLUMN id SET DEFAULT nextval('public.consumer_types_id_seq'::regclass);


--
-- Name: consumers id; Type: DEFAULT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.consumers ALTER COLUMN id SET DEFAULT nextval('public.consumers_id_seq'::regclass);


--
-- Name: inventories id; Type: DEFAULT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.inventories ALTER COLUMN id SET DEFAULT nextval('public.inventories_id_seq'::regclass);


--
-- Name: placement_aggregates id; Type: DEFAULT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.placement_aggregates ALTER COLUMN id SET DEFAULT nextval('public.placement_aggregates_id_seq'::regclass);


--
-- Name: projects id; Type: DEFAULT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.projects ALTER COLUMN id SET DEFAULT nextval('public.projects_id_seq'::regclass);


--
-- Name: resource_classes id; Type: DEFAULT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.resource_classes ALTER COLUMN id SET DEFAULT nextval('public.resource_classes_id_seq'::regclass);


--
-- Name: resource_providers id; Type: DEFAULT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.resource_providers ALTER COLUMN id SET DEFAULT nextval('public.resource_providers_id_seq'::regclass);


--
-- Name: traits id; Type: DEFAULT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.traits ALTER COLUMN id SET DEFAULT nextval('public.traits_id_seq'::regclass);


--
-- Name: users id; Type: DEFAULT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.users ALTER COLUMN id SET DEFAULT nextval('public.users_id_seq'::regclass);


--
-- Data for Name: alembic_version; Type: TABLE DATA; Schema: public; Owner: postgres
--

INSERT INTO public.alembic_version VALUES ('a082b8bb98d0');


--
-- Data for Name: allocations; Type: TABLE DATA; Schema: public; Owner: postgres
--

INSERT INTO public.allocations VALUES ('2026-11-27 09:22:48', NULL, 1, 2, 'c0000000-0000-4000-8000-000000000001', 0, 4);
INSERT INTO public.allocations VALUES ('2026-11-27 09:22:48', NULL, 2, 2, 'c0000000-0000-4000-8000-000000000001', 1, 2048);
INSERT INTO public.allocations VALUES ('2026-11-27 09:22:48', NULL, 3, 6, 'c0000000-0000-4000-8000-000000000001', 2, 40);
INSERT INTO public.allocations VALUES ('2026-11-27 09:22:48', NULL, 4, 3, 'c0000000-0000-4000-8000-000000000002', 0, 2);
INSERT INTO public.allocations VALUES ('2026-11-27 09:22:48', NULL, 5, 5, 'c0000000-0000-4000-8000-000000000003', 0, 9);
INSERT INTO public.allocations VALUES ('2026-11-27 09:22:48', NULL, 6, 5, 'c0000000-0000-4000-8000-000000000003', 2, 100);
INSERT INTO public.allocations VALUES ('2026-11-27 09:22:48', NULL, 7, 4, 'c0000000-0000-4000-8000-000000000005', 10000, 2);


--
-- Data for Name: consumer_types; Type: TABLE DATA; Schema: public; Owner: postgres
--

INSERT INTO public.consumer_types VALUES (NULL, NULL, 1, 'INSTANCE');
INSERT INTO public.consumer_types VALUES (NULL, NULL, 2, 'MIGRATION');


--
-- Data for Name: consumers; Type: TABLE DATA; Schema: public; Owner: postgres
--

INSERT INTO public.consumers VALUES ('2026-11-27 09:22:48', NULL, 1, 'c0000000-0000-4000-8000-000000000001', 1, 1, 1, 1);
INSERT INTO public.consumers VALUES ('2026-11-27 09:22:48', NULL, 2, 'c0000000-0000-4000-8000-000000000002', 1, 1, 1, 2);
INSERT INTO public.consumers VALUES ('2026-11-27 09:22:48', NULL, 3, 'c0000000-0000-4000-8000-000000000003', 2, 2, 1, 1);
INSERT INTO public.consumers VALUES ('2026-11-27 09:22:48', NULL, 4, 'c0000000-0000-4000-8000-000000000005', 2, 3, 1, NULL);
INSERT INTO public.consumers VALUES ('2026-11-27 09:22:48', NULL, 5, 'c0000000-0000-4000-8000-000000000006', 3, 4, 0, 1);


--
-- Data for Name: inventories; Type: TABLE DATA; Schema: public; Owner: postgres
--

INSERT INTO public.inventories VALUES ('2026-11-27 09:22:47', NULL, 1, 2, 0, 16, 0, 1, 2147483647, 1, 16);
INSERT INTO public.inventories VALUES ('2026-11-27 09:22:47', NULL, 2, 2, 1, 65536, 512, 1, 2147483647, 1, 1.5);
INSERT INTO public.inventories VALUES ('2026-11-27 09:22:47', NULL, 3, 3, 0, 16, 0, 1, 2147483647, 1, 16);
INSERT INTO public.inventories VALUES ('2026-11-27 09:22:47', NULL, 4, 3, 1, 65536, 512, 1, 2147483647, 1, 1.5);
INSERT INTO public.inventories VALUES ('2026-11-27 09:22:48', NULL, 5, 5, 0, 5, 0, 1, 2147483647, 1, 0.9);
INSERT INTO public.inventories VALUES ('2026-11-27 09:22:48', NULL, 6, 5, 2, 50, 0, 1, 2147483647, 1, 1);
INSERT INTO public.inventories VALUES ('2026-11-27 09:22:47', NULL, 7, 6, 2, 10000, 100, 1, 2147483647, 1, 1);
INSERT INTO public.inventories VALUES ('2026-11-27 09:22:47', NULL, 8, 4, 10000, 4, 0, 2, 2, 2, 1);


--
-- Data for Name: placement_aggregates; Type: TABLE DATA; Schema: public; Owner: postgres
--

INSERT INTO public.placement_aggregates VALUES (NULL, NULL, 1, 'B6600000-0000-4000-8000-000000000002');
INSERT INTO public.placement_aggregates VALUES (NULL, NULL, 2, 'a6600000-0000-4000-8000-000000000001');


--
-- Data for Name: projects; Type: TABLE DATA; Schema: public; Owner: postgres
--

INSERT INTO public.projects VALUES (NULL, NULL, 1, 'project-1');
INSERT INTO public.projects VALUES (NULL, NULL, 2, 'project-2');
INSERT INTO public.projects VALUES (NULL, NULL, 3, 'project-3');


--
-- Data for Name: resource_classes; Type: TABLE DATA; Schema: public; Owner: postgres
--

INSERT INTO public.resource_classes VALUES ('2026-11-27 09:22:46', NULL, 0, 'VCPU');
INSERT INTO public.resource_classes VALUES ('2026-11-27 09:22:46', NULL, 1, 'MEMORY_MB');
INSERT INTO public.resource_classes VALUES ('2026-11-27 09:22:46', NULL, 2, 'DISK_GB');
INSERT INTO public.resource_classes VALUES ('2026-11-27 09:22:46', NULL, 3, 'PCI_DEVICE');
INSERT INTO public.resource_classes VALUES ('2026-11-27 09:22:46', NULL, 4, 'SRIOV_NET_VF');
INSERT INTO public.resource_classes VALUES ('2026-11-27 09:22:46', NULL, 5, 'NUMA_SOCKET');
INSERT INTO public.resource_classes VALUES ('2026-11-27 09:22:46', NULL, 6, 'NUMA_CORE');
INSERT INTO public.resource_classes VALUES ('2026-11-27 09:22:46', NULL, 7, 'NUMA_THREAD');
INSERT INTO public.resource_classes VALUES ('2026-11-27 09:22:46', NULL, 8, 'NUMA_MEMORY_MB');
INSERT INTO public.resource_classes VALUES ('2026-11-27 09:22:46', NULL, 9, 'IPV4_ADDRESS');
INSERT INTO public.resource_classes VALUES ('2026-11-27 09:22:46', NULL, 10, 'VGPU');
INSERT INTO public.resource_classes VALUES ('2026-11-27 09:22:46', NULL, 11, 'VGPU_DISPLAY_HEAD');
INSERT INTO public.resource_classes VALUES ('2026-11-27 09:22:46', NULL, 12, 'NET_BW_EGR_KILOBIT_PER_SEC');
INSERT INTO public.resource_classes VALUES ('2026-11-27 09:22:46', NULL, 13, 'NET_BW_IGR_KILOBIT_PER_SEC');
INSERT INTO public.resource_classes VALUES ('2026-11-27 09:22:46', NULL, 14, 'PCPU');
INSERT INTO public.resource_classes VALUES ('2026-11-27 09:22:46', NULL, 15, 'MEM_ENCRYPTION_CONTEXT');
INSERT INTO public.resource_classes VALUES ('2026-11-27 09:22:46', NULL, 16, 'FPGA');
INSERT INTO public.resource_classes VALUES ('2026-11-27 09:22:46', NULL, 17, 'PGPU');
INSERT INTO public.resource_classes VALUES ('2026-11-27 09:22:46', NULL, 18, 'NET_PACKET_RATE_KILOPACKET_PER_SEC');
INSERT INTO public.resource_classes VALUES ('2026-11-27 09:22:46', NULL, 19, 'NET_PACKET_RATE_EGR_KILOPACKET_PER_SEC');
INSERT INTO public.resource_classes VALUES ('2026-11-27 09:22:46', NULL, 20, 'NET_PACKET_RATE_IGR_KILOPACKET_PER_SEC');
INSERT INTO public.resource_classes VALUES ('2026-11-27 09:22:47', NULL, 10000, 'CUSTOM_GOLD');


--
-- Data for Name: resource_provider_aggregates; Type: TABLE DATA; Schema: public; Owner: postgres
--

INSERT INTO public.resource_provider_aggregates VALUES (NULL, NULL, 1, 1);
INSERT INTO public.resource_provider_aggregates VALUES (NULL, NULL, 1, 2);
INSERT INTO public.resource_provider_aggregates VALUES (NULL, NULL, 6, 2);


--
-- Data for Name: resource_provider_traits; Type: TABLE DATA; Schema: public; Owner: postgres
--

INSERT INTO public.resource_provider_traits VALUES (NULL, NULL, 85, 2);
INSERT INTO public.resource_provider_traits VALUES (NULL, NULL, 378, 2);
INSERT INTO public.resource_provider_traits VALUES (NULL, NULL, 85, 3);
INSERT INTO public.resource_provider_traits VALUES (NULL, NULL, 378, 3);
INSERT INTO public.resource_provider_traits VALUES (NULL, NULL, 23, 6);
INSERT INTO public.resource_provider_traits VALUES (NULL, NULL, 380, 6);


--
-- Data for Name: resource_providers; Type: TABLE DATA; Schema: public; Owner: postgres
--

INSERT INTO public.resource_providers VALUES ('2026-11-27 09:22:47', '2026-11-27 09:22:47', 1, 'a0000000-0000-4000-8000-000000000001', 'cmp-1', 1, 1, NULL);
INSERT INTO public.resource_providers VALUES ('2026-11-27 09:22:47', '2026-11-27 09:22:48', 2, 'a0000000-0000-4000-8000-000000000003', 'cmp-1-numa-0', 3, 1, 1);
INSERT INTO public.resource_providers VALUES ('2026-11-27 09:22:47', '2026-11-27 09:22:48', 3, 'a0000000-0000-4000-8000-000000000004', 'cmp-1-numa-1', 3, 1, 1);
INSERT INTO public.resource_providers VALUES ('2026-11-27 09:22:47', '2026-11-27 09:22:48', 5, 'a0000000-0000-4000-8000-000000000006', 'O''Brien \ "über";
-- 😀;
', 4, 5, NULL);
INSERT INTO public.resource_providers VALUES ('2026-11-27 09:22:47', '2026-11-27 09:22:48', 6, 'a0000000-0000-4000-8000-000000000007', 'Storage', 4, 6, NULL);
INSERT INTO public.resource_providers VALUES ('2026-11-27 09:22:47', '2026-11-27 09:22:47', 7, 'a0000000-0000-4000-8000-000000000008', 'younger parent', 0, 7, NULL);
INSERT INTO public.resource_providers VALUES ('2026-11-27 09:22:47', '2026-11-27 09:22:48', 4, 'a0000000-0000-4000-8000-000000000005', 'moved', 2, 7, 7);


--
-- Data for Name: traits; Type: TABLE DATA; Schema: public; Owner: postgres
--

INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 1, 'HW_GPU_RESOLUTION_W1600H1200');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 2, 'HW_GPU_API_DIRECT2D');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 3, 'COMPUTE_SAME_HOST_COLD_MIGRATE');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 4, 'COMPUTE_SOCKET_PCI_NUMA_AFFINITY');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 5, 'HW_GPU_API_OPENGL_V1_4');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 6, 'HW_GPU_CUDA_COMPUTE_CAPABILITY_V5_2');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 7, 'HW_GPU_RESOLUTION_W1024H768');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 8, 'HW_CPU_X86_AVX512DQ');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 9, 'HW_GPU_CUDA_SDK_V9_0');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 10, 'COMPUTE_VOLUME_EXTEND');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 11, 'COMPUTE_SOUND_MODEL_SB16');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 12, 'HW_GPU_API_DIRECT3D_V8_0');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 13, 'HW_GPU_API_OPENGL_V4_3');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 14, 'HW_CPU_X86_AMD_SVM');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 15, 'HW_GPU_RESOLUTION_W1280H1024');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 16, 'HW_NIC_DCB_ETS');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 17, 'HW_GPU_API_DIRECT3D_V11_1');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 18, 'HW_NIC_SRIOV_QOS_TX');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 19, 'COMPUTE_NET_VIF_MODEL_IGB');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 20, 'COMPUTE_MIGRATE_POST_COPY');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 21, 'COMPUTE_STORAGE_BUS_VIRTIO');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 22, 'STORAGE_DISK_HDD');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 23, 'MISC_SHARES_VIA_AGGREGATE');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 24, 'HW_CPU_X86_SHA');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 25, 'HW_CPU_X86_MPX');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 26, 'HW_GPU_API_OPENGL_V1_1');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 27, 'HW_ARCH_ALPHA');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 28, 'HW_ARCH_IA64');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 29, 'HW_GPU_API_OPENCL_V1_1');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 30, 'COMPUTE_STORAGE_BUS_USB');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 31, 'COMPUTE_NET_VIF_MODEL_VMXNET');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 32, 'HW_ARCH_MIPS');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 33, 'HW_GPU_API_OPENGL_V3_2');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 34, 'HW_GPU_CUDA_COMPUTE_CAPABILITY_V7_0');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 35, 'COMPUTE_IMAGE_TYPE_VHDX');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 36, 'HW_CPU_X86_AVX512BW');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 37, 'HW_ARCH_PARISC64');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 38, 'HW_GPU_CUDA_COMPUTE_CAPABILITY_V1_0');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 39, 'COMPUTE_ACCELERATORS');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 40, 'HW_GPU_RESOLUTION_W1360H768');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 41, 'HW_CPU_X86_AVX512VPCLMULQDQ');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 42, 'HW_GPU_MAX_DISPLAY_HEADS_2');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 43, 'HW_GPU_CUDA_COMPUTE_CAPABILITY_V5_0');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 44, 'HW_GPU_CUDA_SDK_V6_5');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 45, 'COMPUTE_SECURITY_TPM_SECRET_SECURITY_USER');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 46, 'HW_NIC_OFFLOAD_RDMA');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 47, 'HW_CPU_X86_AVX512VAES');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 48, 'HW_ARCH_SH4');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 49, 'HW_GPU_CUDA_COMPUTE_CAPABILITY_V6_2');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 50, 'COMPUTE_SOUND_MODEL_USB');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 51, 'COMPUTE_FIRMWARE_BIOS');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 52, 'COMPUTE_SECURITY_TPM_2_0');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 53, 'HW_GPU_RESOLUTION_W1366H768');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 54, 'HW_ARCH_S390X');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 55, 'HW_GPU_CUDA_COMPUTE_CAPABILITY_V6_0');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 56, 'COMPUTE_SECURITY_STATELESS_FIRMWARE');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 57, 'HW_GPU_CUDA_SDK_V10_0');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 58, 'HW_CPU_AARCH64_SHA512');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 59, 'COMPUTE_STATUS_DISABLED');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 60, 'HW_CPU_X86_TBM');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 61, 'HW_GPU_API_OPENGL_V4_1');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 62, 'COMPUTE_VIOMMU_MODEL_AUTO');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 63, 'HW_CPU_AARCH64_PMULL');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 64, 'HW_NIC_DCB_QCN');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 65, 'COMPUTE_GRAPHICS_MODEL_VGA');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 66, 'HW_CPU_AARCH64_FPHP');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 67, 'HW_CPU_AMD_SEV');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 68, 'HW_CPU_X86_SSE3');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 69, 'HW_GPU_CUDA_COMPUTE_CAPABILITY_V3_0');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 70, 'HW_ARCH_LM32');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 71, 'COMPUTE_IMAGE_TYPE_ISO');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 72, 'HW_NIC_ACCEL_TLS');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 73, 'HW_NIC_DCB_PFC');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 74, 'COMPUTE_SECURITY_TPM_TIS');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 75, 'COMPUTE_STORAGE_BUS_SCSI');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 76, 'COMPUTE_GRAPHICS_MODEL_NONE');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 77, 'HW_CPU_AARCH64_JSCVT');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 78, 'HW_ARCH_XTENSA');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 79, 'HW_NIC_OFFLOAD_TX');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 80, 'HW_CPU_PPC64LE_POWER9');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 81, 'HW_GPU_API_DIRECT3D_V11_2');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 82, 'HW_CPU_X86_AMD_SEV');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 83, 'HW_NIC_OFFLOAD_L2CRC');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 84, 'HW_CPU_X86_FMA3');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 85, 'HW_NUMA_ROOT');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 86, 'HW_ARCH_PPC64LE');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 87, 'COMPUTE_IMAGE_TYPE_VHD');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 88, 'HW_ARCH_UNICORE32');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 89, 'HW_ARCH_SPARC64');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 90, 'COMPUTE_ARCH_X86_64');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 91, 'HW_GPU_API_DIRECT3D_V10_1');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 92, 'COMPUTE_EPHEMERAL_ENCRYPTION_LUKS');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 93, 'HW_CPU_AARCH64_DCPOP');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 94, 'HW_CPU_X86_TSX');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 95, 'COMPUTE_VIOMMU_MODEL_SMMUV3');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 96, 'HW_CPU_AARCH64_SHA2');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 97, 'HW_CPU_X86_AMXINT8');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 98, 'COMPUTE_TRUSTED_CERTS');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 99, 'HW_GPU_API_OPENGL_V4_0');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 100, 'COMPUTE_IMAGE_TYPE_AKI');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 101, 'HW_NIC_PROGRAMMABLE_PIPELINE');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 102, 'HW_NIC_OFFLOAD_RX');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 103, 'HW_CPU_X86_AVX512VBMI');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 104, 'COMPUTE_VIOMMU_MODEL_VIRTIO');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 105, 'HW_CPU_AARCH64_ASIMDHP');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 106, 'HW_GPU_API_DIRECT3D_V11_0');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 107, 'HW_GPU_RESOLUTION_W7680H4320');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 108, 'COMPUTE_STORAGE_BUS_XEN');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 109, 'COMPUTE_USB_MODEL_QEMU_XHCI');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 110, 'HW_NIC_ACCEL_DIFFIEH');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 111, 'HW_CPU_X86_INTEL_TDX');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 112, 'HW_GPU_CUDA_COMPUTE_CAPABILITY_V6_1');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 113, 'COMPUTE_SECURITY_TPM_1_2');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 114, 'HW_NIC_OFFLOAD_GRE');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 115, 'COMPUTE_SECURITY_UEFI_SECURE_BOOT');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 116, 'HW_CPU_X86_SSE41');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 117, 'HW_GPU_API_DIRECT3D_V7_0');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 118, 'HW_CPU_X86_AVX');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 119, 'COMPUTE_NET_VIF_MODEL_VMXNET3');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 120, 'HW_CPU_X86_AVX2');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 121, 'HW_GPU_API_OPENGL_V2_1');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 122, 'COMPUTE_NET_VIRTIO_PACKED');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 123, 'HW_GPU_API_DIRECTX_V10');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 124, 'HW_NIC_OFFLOAD_TXUDP');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 125, 'HW_GPU_CUDA_COMPUTE_CAPABILITY_V7_1');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 126, 'HW_NIC_OFFLOAD_SG');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 127, 'HW_CPU_X86_BMI2');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 128, 'HW_NIC_OFFLOAD_GRO');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 129, 'COMPUTE_IMAGE_TYPE_AMI');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 130, 'HW_NIC_ACCEL_ECC');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 131, 'COMPUTE_RESCUE_BFV');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 132, 'HW_ARCH_MIPS64EL');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 133, 'COMPUTE_CONFIG_DRIVE_REGENERATION');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 134, 'HW_ARCH_PPCLE');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 135, 'HW_ARCH_X86_64');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 136, 'HW_GPU_RESOLUTION_W1280H800');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 137, 'COMPUTE_ADDRESS_SPACE_EMULATED');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 138, 'COMPUTE_EPHEMERAL_ENCRYPTION_PLAIN');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 139, 'HW_NIC_OFFLOAD_TCS');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 140, 'COMPUTE_SOUND_MODEL_ICH6');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 141, 'COMPUTE_GRAPHICS_MODEL_BOCHS');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 142, 'HW_GPU_RESOLUTION_W2560H1440');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 143, 'HW_GPU_CUDA_SDK_V8_0');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 144, 'HW_CPU_AARCH64_ASIMD');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 145, 'HW_CPU_X86_STIBP');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 146, 'COMPUTE_GRAPHICS_MODEL_XEN');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 147, 'COMPUTE_NET_VIF_MODEL_PCNET');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 148, 'HW_CPU_X86_AVX512VNNI');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 149, 'HW_CPU_X86_AMD_SEV_ES');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 150, 'COMPUTE_GRAPHICS_MODEL_QXL');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 151, 'HW_GPU_API_OPENCL_V1_2');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 152, 'HW_NIC_OFFLOAD_QINQ');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 153, 'COMPUTE_STORAGE_BUS_UML');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 154, 'HW_NIC_MULTIQUEUE');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 155, 'HW_GPU_API_OPENGL_V1_3');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 156, 'HW_GPU_MAX_DISPLAY_HEADS_4');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 157, 'HW_PCI_ONE_TIME_USE');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 158, 'COMPUTE_IMAGE_TYPE_ARI');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 159, 'COMPUTE_IMAGE_TYPE_RAW');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 160, 'HW_CPU_X86_AMD_VIRT_SSBD');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 161, 'HW_GPU_CUDA_COMPUTE_CAPABILITY_V5_3');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 162, 'HW_GPU_RESOLUTION_W3840H2160');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 163, 'HW_NIC_OFFLOAD_SCS');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 164, 'HW_GPU_CUDA_COMPUTE_CAPABILITY_V7_2');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 165, 'HW_CPU_AARCH64_SM3');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 166, 'HW_PCI_LIVE_MIGRATABLE');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 167, 'HW_CPU_X86_AMXTILE');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 168, 'HW_CPU_AARCH64_SM4');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 169, 'HW_GPU_API_DIRECTX_V12');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 170, 'HW_GPU_CUDA_SDK_V7_5');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 171, 'HW_CPU_AARCH64_FP');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 172, 'HW_NIC_OFFLOAD_UCS');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 173, 'COMPUTE_ARCH_PPC64LE');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 174, 'HW_GPU_CUDA_COMPUTE_CAPABILITY_V2_1');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 175, 'COMPUTE_STORAGE_BUS_FDC');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 176, 'HW_ARCH_MICROBLAZEEL');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 177, 'HW_GPU_CUDA_COMPUTE_CAPABILITY_V3_5');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 178, 'HW_ARCH_CRIS');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 179, 'HW_GPU_CUDA_COMPUTE_CAPABILITY_V1_2');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 180, 'HW_GPU_API_DIRECT3D_V9_0C');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 181, 'HW_CPU_X86_AESNI');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 182, 'HW_GPU_API_OPENGL_V1_5');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 183, 'HW_GPU_API_DIRECT3D_V9_0B');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 184, 'HW_NIC_OFFLOAD_LSO');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 185, 'COMPUTE_NODE');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 186, 'HW_CPU_X86_AVX512CD');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 187, 'COMPUTE_GRAPHICS_MODEL_VMVGA');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 188, 'HW_GPU_RESOLUTION_W1920H1200');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 189, 'HW_CPU_X86_AVX512VL');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 190, 'HW_ARCH_AARCH64');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 191, 'HW_GPU_API_OPENGL_V4_2');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 192, 'HW_CPU_X86_SSE42');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 193, 'COMPUTE_IMAGE_TYPE_QCOW2');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 194, 'HW_CPU_AARCH64_SHA1');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 195, 'HW_CPU_X86_AVX512BITALG');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 196, 'HW_NVME_BES');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 197, 'COMPUTE_NET_VIF_MODEL_VIRTIO');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 198, 'COMPUTE_FIRMWARE_UEFI');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 199, 'HW_GPU_RESOLUTION_W320H240');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 200, 'COMPUTE_REMOTE_MANAGED_PORTS');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 201, 'COMPUTE_VOLUME_ATTACH');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 202, 'HW_GPU_CUDA_COMPUTE_CAPABILITY_V1_1');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 203, 'HW_CPU_X86_AVX512VPOPCNTDQ');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 204, 'COMPUTE_NET_VIF_MODEL_SPAPR_VLAN');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 205, 'COMPUTE_EPHEMERAL_ENCRYPTION');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 206, 'HW_ARCH_ARMV7');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 207, 'COMPUTE_EPHEMERAL_ENCRYPTION_LUKSV2');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 208, 'COMPUTE_SECURITY_TPM_CRB');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 209, 'HW_CPU_X86_MMX');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 210, 'HW_GPU_API_OPENGL_V1_2');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 211, 'HW_CPU_AARCH64_AES');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 212, 'HW_CPU_AARCH64_SHA3');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 213, 'COMPUTE_SHARE_LOCAL_FS');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 214, 'HW_GPU_CUDA_COMPUTE_CAPABILITY_V3_7');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 215, 'COMPUTE_SOUND_MODEL_ES1370');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 216, 'COMPUTE_VOLUME_ATTACH_WITH_TAG');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 217, 'HW_NIC_OFFLOAD_UFO');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 218, 'COMPUTE_NET_VIF_MODEL_SRIOV');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 219, 'OWNER_NOVA');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 220, 'HW_CPU_X86_3DNOW');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 221, 'HW_CPU_X86_AMD_NO_SSB');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 222, 'COMPUTE_STORAGE_VIRTIO_FS');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 223, 'HW_NIC_SRIOV');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 224, 'HW_ARCH_S390');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 225, 'COMPUTE_NET_VIF_MODEL_E1000E');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 226, 'HW_CPU_X86_INTEL_VMX');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 227, 'HW_GPU_API_OPENGL_V4_5');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 228, 'HW_CPU_X86_SSE');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 229, 'HW_GPU_MAX_DISPLAY_HEADS_1');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 230, 'HW_CPU_AARCH64_ATOMICS');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 231, 'COMPUTE_SECURITY_TPM_SECRET_SECURITY_DEPLOYMENT');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 232, 'COMPUTE_SECURITY_TPM_SECRET_SECURITY_HOST');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 233, 'HW_GPU_API_OPENGL_V3_3');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 234, 'HW_CPU_X86_SSE2');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 235, 'HW_NIC_OFFLOAD_TSO');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 236, 'HW_CPU_X86_F16C');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 237, 'HW_CPU_X86_AVX512ER');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 238, 'HW_GPU_API_DIRECT3D_V9_0');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 239, 'HW_NIC_ACCEL_IPSEC');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 240, 'COMPUTE_NET_VIF_MODEL_NETFRONT');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 241, 'COMPUTE_ARCH_AARCH64');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 242, 'HW_GPU_RESOLUTION_W1680H1050');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 243, 'COMPUTE_GRAPHICS_MODEL_VIRTIO');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 244, 'HW_NIC_OFFLOAD_SWITCHDEV');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 245, 'HW_CPU_AARCH64_SVE');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 246, 'HW_CPU_X86_AMD_IBPB');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 247, 'HW_NIC_ACCEL_LZS');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 248, 'HW_CPU_HYPERTHREADING');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 249, 'HW_GPU_API_VULKAN');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 250, 'HW_NIC_OFFLOAD_TXVLAN');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 251, 'HW_CPU_PPC64LE_POWER8');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 252, 'HW_CPU_X86_AVX512GFNI');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 253, 'HW_CPU_AARCH64_FCMA');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 254, 'HW_CPU_X86_ASF');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 255, 'HW_CPU_X86_INTEL_SPEC_CTRL');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 256, 'HW_GPU_API_DIRECT3D_V9_0L');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 257, 'COMPUTE_DEVICE_TAGGING');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 258, 'HW_CPU_X86_SSSE3');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 259, 'HW_ARCH_I686');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 260, 'HW_CPU_X86_VMX');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 261, 'HW_GPU_RESOLUTION_W800H600');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 262, 'HW_GPU_API_DIRECT3D_V11_3');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 263, 'HW_GPU_RESOLUTION_W1280H720');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 264, 'HW_NIC_OFFLOAD_RXVLAN');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 265, 'HW_ARCH_OPENRISC');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 266, 'COMPUTE_NET_ATTACH_INTERFACE');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 267, 'COMPUTE_NET_VIF_MODEL_NE2K_PCI');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 268, 'HW_CPU_AARCH64_ASIMDDP');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 269, 'COMPUTE_VOLUME_MULTI_ATTACH');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 270, 'HW_CPU_X86_AVX512IFMA');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 271, 'HW_GPU_CUDA_SDK_V9_2');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 272, 'HW_CPU_AARCH64_ASIMDRDM');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 273, 'HW_GPU_MAX_DISPLAY_HEADS_8');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 274, 'HW_GPU_API_DIRECT3D_V12_0');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 275, 'COMPUTE_SOUND_MODEL_AC97');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 276, 'COMPUTE_STORAGE_BUS_LXC');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 277, 'HW_GPU_API_OPENCL_V2_1');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 278, 'HW_GPU_CUDA_COMPUTE_CAPABILITY_V2_0');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 279, 'HW_ARCH_MICROBLAZE');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 280, 'COMPUTE_STORAGE_BUS_SATA');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 281, 'HW_ARCH_PPCEMB');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 282, 'HW_GPU_API_OPENGL_V4_4');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 283, 'COMPUTE_SOUND_MODEL_PCSPK');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 284, 'HW_ARCH_SH4EB');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 285, 'COMPUTE_NET_VIF_MODEL_LAN9118');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 286, 'HW_GPU_RESOLUTION_W1152H864');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 287, 'HW_CPU_X86_FMA4');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 288, 'COMPUTE_ADDRESS_SPACE_PASSTHROUGH');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 289, 'HW_GPU_API_OPENGL_V3_0');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 290, 'HW_NIC_ACCEL_RSA');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 291, 'HW_GPU_API_OPENGL_V3_1');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 292, 'HW_GPU_RESOLUTION_W1600H900');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 293, 'COMPUTE_SOUND_MODEL_VIRTIO');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 294, 'COMPUTE_MIGRATE_AUTO_CONVERGE');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 295, 'COMPUTE_ARCH_RISCV64');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 296, 'HW_ARCH_M68K');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 297, 'HW_ARCH_SPARC');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 298, 'HW_GPU_API_DXVA');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 299, 'HW_CPU_X86_AVX512PF');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 300, 'HW_CPU_X86_AVX512VBMI2');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 301, 'HW_CPU_X86_INTEL_SSBD');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 302, 'HW_CPU_X86_INTEL_PCID');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 303, 'HW_GPU_RESOLUTION_W1440H900');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 304, 'HW_NVME_CES');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 305, 'COMPUTE_ARCH_MIPSEL');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 306, 'HW_NIC_OFFLOAD_VXLAN');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 307, 'COMPUTE_NET_ATTACH_INTERFACE_WITH_TAG');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 308, 'HW_CPU_AARCH64_EVTSTRM');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 309, 'HW_CPU_X86_XOP');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 310, 'COMPUTE_VIOMMU_MODEL_INTEL');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 311, 'COMPUTE_ARCH_S390X');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 312, 'HW_GPU_API_DIRECT3D_V10_0');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 313, 'COMPUTE_USB_MODEL_NEC_XHCI');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 314, 'HW_CPU_X86_PDPE1GB');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 315, 'HW_NVME_WZS');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 316, 'STORAGE_DISK_SSD');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 317, 'HW_NIC_SRIOV_TRUSTED');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 318, 'HW_NIC_VMDQ');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 319, 'COMPUTE_NET_VIF_MODEL_E1000');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 320, 'COMPUTE_GRAPHICS_MODEL_GOP');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 321, 'HW_GPU_API_DIRECT3D_V8_1');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 322, 'HW_ARCH_MIPSEL');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 323, 'HW_ARCH_ARMV6');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 324, 'HW_NIC_OFFLOAD_RXHASH');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 325, 'HW_GPU_RESOLUTION_W1280H768');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 326, 'HW_NIC_SRIOV_MULTIQUEUE');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 327, 'COMPUTE_IMAGE_TYPE_PLOOP');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 328, 'HW_NIC_SRIOV_QOS_RX');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 329, 'HW_NIC_ACCEL_DEFLATE');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 330, 'HW_CPU_X86_INTEL_MD_CLEAR');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 331, 'HW_CPU_X86_SVM');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 332, 'HW_GPU_API_OPENGL_V2_0');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 333, 'HW_CPU_AARCH64_CPUID');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 334, 'HW_ARCH_PPC64');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 335, 'HW_GPU_API_OPENCL_V2_2');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 336, 'HW_GPU_RESOLUTION_W640H480');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 337, 'HW_GPU_RESOLUTION_W2560H1600');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 338, 'HW_CPU_X86_AVX512F');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 339, 'HW_NIC_OFFLOAD_GSO');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 340, 'HW_CPU_X86_SSE4A');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 341, 'COMPUTE_IMAGE_TYPE_VDI');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 342, 'HW_NIC_OFFLOAD_FDF');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 343, 'HW_CPU_X86_CLMUL');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 344, 'COMPUTE_MANAGED_PCI_DEVICE');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 345, 'COMPUTE_SOUND_MODEL_ICH9');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 346, 'COMPUTE_MEM_BACKING_FILE');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 347, 'HW_GPU_RESOLUTION_W1024H600');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 348, 'HW_GPU_RESOLUTION_W1920H1080');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 349, 'HW_GPU_CUDA_COMPUTE_CAPABILITY_V3_2');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 350, 'HW_GPU_API_OPENCL_V1_0');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 351, 'HW_ARCH_PPC');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 352, 'HW_CPU_X86_SGX');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 353, 'HW_NIC_ACCEL_SSL');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 354, 'HW_GPU_MAX_DISPLAY_HEADS_6');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 355, 'HW_ARCH_ARMV7B');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 356, 'HW_CPU_X86_AMD_SEV_SNP');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 357, 'HW_GPU_API_DIRECTX_V11');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 358, 'HW_CPU_X86_AMXBF16');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 359, 'HW_CPU_X86_AMD_SSBD');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 360, 'HW_GPU_CUDA_COMPUTE_CAPABILITY_V1_3');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 361, 'COMPUTE_IMAGE_TYPE_VMDK');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 362, 'COMPUTE_STORAGE_BUS_IDE');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 363, 'HW_CPU_AARCH64_CRC32');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 364, 'HW_GPU_API_DIRECT3D_V6_0');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 365, 'HW_CPU_AARCH64_LRCPC');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 366, 'HW_CPU_X86_ABM');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 367, 'OWNER_CYBORG');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 368, 'HW_ARCH_XTENSAEB');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 369, 'HW_GPU_API_OPENCL_V2_0');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 370, 'COMPUTE_GRAPHICS_MODEL_CIRRUS');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 371, 'HW_CPU_X86_BMI');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 372, 'HW_ARCH_MIPS64');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 373, 'HW_ARCH_PARISC');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 374, 'HW_NIC_OFFLOAD_GENEVE');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 375, 'HW_NIC_OFFLOAD_LRO');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 376, 'COMPUTE_NET_VIF_MODEL_RTL8139');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:46', NULL, 377, 'HW_GPU_CUDA_SDK_V9_1');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:47', NULL, 378, 'CUSTOM_FAST');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:47', NULL, 379, 'CUSTOM_NONE');
INSERT INTO public.traits VALUES ('2026-11-27 09:22:47', NULL, 380, 'CUSTOM_RACK_7');


--
-- Data for Name: users; Type: TABLE DATA; Schema: public; Owner: postgres
--

INSERT INTO public.users VALUES (NULL, NULL, 1, 'user of project-1');
INSERT INTO public.users VALUES (NULL, NULL, 2, 'user of project-2');
INSERT INTO public.users VALUES (NULL, NULL, 3, 'Üser');
INSERT INTO public.users VALUES (NULL, NULL, 4, 'user of project-3');


--
-- Name: allocations_id_seq; Type: SEQUENCE SET; Schema: public; Owner: postgres
--

SELECT pg_catalog.setval('public.allocations_id_seq', 7, true);


--
-- Name: consumer_types_id_seq; Type: SEQUENCE SET; Schema: public; Owner: postgres
--

SELECT pg_catalog.setval('public.consumer_types_id_seq', 2, true);


--
-- Name: consumers_id_seq; Type: SEQUENCE SET; Schema: public; Owner: postgres
--

SELECT pg_catalog.setval('public.consumers_id_seq', 5, true);


--
-- Name: inventories_id_seq; Type: SEQUENCE SET; Schema: public; Owner: postgres
--

SELECT pg_catalog.setval('public.inventories_id_seq', 8, true);


--
-- Name: placement_aggregates_id_seq; Type: SEQUENCE SET; Schema: public; Owner: postgres
--

SELECT pg_catalog.setval('public.placement_aggregates_id_seq', 2, true);


--
-- Name: projects_id_seq; Type: SEQUENCE SET; Schema: public; Owner: postgres
--

SELECT pg_catalog.setval('public.projects_id_seq', 3, true);


--
-- Name: resource_classes_id_seq; Type: SEQUENCE SET; Schema: public; Owner: postgres
--

SELECT pg_catalog.setval('public.resource_classes_id_seq', 10000, true);


--
-- Name: resource_providers_id_seq; Type: SEQUENCE SET; Schema: public; Owner: postgres
--

SELECT pg_catalog.setval('public.resource_providers_id_seq', 7, true);


--
-- Name: traits_id_seq; Type: SEQUENCE SET; Schema: public; Owner: postgres
--

SELECT pg_catalog.setval('public.traits_id_seq', 380, true);


--
-- Name: users_id_seq; Type: SEQUENCE SET; Schema: public; Owner: postgres
--

SELECT pg_catalog.setval('public.users_id_seq', 4, true);


--
-- Name: alembic_version alembic_version_pkc; Type: CONSTRAINT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.alembic_version
    ADD CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num);


--
-- Name: allocations allocations_pkey; Type: CONSTRAINT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.allocations
    ADD CONSTRAINT allocations_pkey PRIMARY KEY (id);


--
-- Name: consumer_types consumer_types_pkey; Type: CONSTRAINT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.consumer_types
    ADD CONSTRAINT consumer_types_pkey PRIMARY KEY (id);


--
-- Name: consumers consumers_pkey; Type: CONSTRAINT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.consumers
    ADD CONSTRAINT consumers_pkey PRIMARY KEY (id);


--
-- Name: inventories inventories_pkey; Type: CONSTRAINT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.inventories
    ADD CONSTRAINT inventories_pkey PRIMARY KEY (id);


--
-- Name: placement_aggregates placement_aggregates_pkey; Type: CONSTRAINT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.placement_aggregates
    ADD CONSTRAINT placement_aggregates_pkey PRIMARY KEY (id);


--
-- Name: projects projects_pkey; Type: CONSTRAINT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.projects
    ADD CONSTRAINT projects_pkey PRIMARY KEY (id);


--
-- Name: resource_classes resource_classes_pkey; Type: CONSTRAINT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.resource_classes
    ADD CONSTRAINT resource_classes_pkey PRIMARY KEY (id);


--
-- Name: resource_provider_aggregates resource_provider_aggregates_pkey; Type: CONSTRAINT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.resource_provider_aggregates
    ADD CONSTRAINT resource_provider_aggregates_pkey PRIMARY KEY (resource_provider_id, aggregate_id);


--
-- Name: resource_provider_traits resource_provider_traits_pkey; Type: CONSTRAINT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.resource_provider_traits
    ADD CONSTRAINT resource_provider_traits_pkey PRIMARY KEY (trait_id, resource_provider_id);


--
-- Name: resource_providers resource_providers_pkey; Type: CONSTRAINT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.resource_providers
    ADD CONSTRAINT resource_providers_pkey PRIMARY KEY (id);


--
-- Name: traits traits_pkey; Type: CONSTRAINT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.traits
    ADD CONSTRAINT traits_pkey PRIMARY KEY (id);


--
-- Name: consumer_types uniq_consumer_types0name; Type: CONSTRAINT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.consumer_types
    ADD CONSTRAINT uniq_consumer_types0name UNIQUE (name);


--
-- Name: consumers uniq_consumers0uuid; Type: CONSTRAINT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.consumers
    ADD CONSTRAINT uniq_consumers0uuid UNIQUE (uuid);


--
-- Name: inventories uniq_inventories0resource_provider_resource_class; Type: CONSTRAINT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.inventories
    ADD CONSTRAINT uniq_inventories0resource_provider_resource_class UNIQUE (resource_provider_id, resource_class_id);


--
-- Name: placement_aggregates uniq_placement_aggregates0uuid; Type: CONSTRAINT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.placement_aggregates
    ADD CONSTRAINT uniq_placement_aggregates0uuid UNIQUE (uuid);


--
-- Name: projects uniq_projects0external_id; Type: CONSTRAINT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.projects
    ADD CONSTRAINT uniq_projects0external_id UNIQUE (external_id);


--
-- Name: resource_classes uniq_resource_classes0name; Type: CONSTRAINT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.resource_classes
    ADD CONSTRAINT uniq_resource_classes0name UNIQUE (name);


--
-- Name: resource_providers uniq_resource_providers0name; Type: CONSTRAINT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.resource_providers
    ADD CONSTRAINT uniq_resource_providers0name UNIQUE (name);


--
-- Name: resource_providers uniq_resource_providers0uuid; Type: CONSTRAINT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.resource_providers
    ADD CONSTRAINT uniq_resource_providers0uuid UNIQUE (uuid);


--
-- Name: traits uniq_traits0name; Type: CONSTRAINT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.traits
    ADD CONSTRAINT uniq_traits0name UNIQUE (name);


--
-- Name: users uniq_users0external_id; Type: CONSTRAINT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.users
    ADD CONSTRAINT uniq_users0external_id UNIQUE (external_id);


--
-- Name: users users_pkey; Type: CONSTRAINT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.users
    ADD CONSTRAINT users_pkey PRIMARY KEY (id);


--
-- Name: allocations_consumer_id_idx; Type: INDEX; Schema: public; Owner: postgres
--

CREATE INDEX allocations_consumer_id_idx ON public.allocations USING btree (consumer_id);


--
-- Name: allocations_resource_class_id_idx; Type: INDEX; Schema: public; Owner: postgres
--

CREATE INDEX allocations_resource_class_id_idx ON public.allocations USING btree (resource_class_id);


--
-- Name: allocations_resource_provider_class_used_idx; Type: INDEX; Schema: public; Owner: postgres
--

CREATE INDEX allocations_resource_provider_class_used_idx ON public.allocations USING btree (resource_provider_id, resource_class_id, used);


--
-- Name: consumers_consumer_type_id_idx; Type: INDEX; Schema: public; Owner: postgres
--

CREATE INDEX consumers_consumer_type_id_idx ON public.consumers USING btree (consumer_type_id);


--
-- Name: consumers_project_id_user_id_uuid_idx; Type: INDEX; Schema: public; Owner: postgres
--

CREATE INDEX consumers_project_id_user_id_uuid_idx ON public.consumers USING btree (project_id, user_id, uuid);


--
-- Name: consumers_project_id_uuid_idx; Type: INDEX; Schema: public; Owner: postgres
--

CREATE INDEX consumers_project_id_uuid_idx ON public.consumers USING btree (project_id, uuid);


--
-- Name: inventories_resource_class_id_idx; Type: INDEX; Schema: public; Owner: postgres
--

CREATE INDEX inventories_resource_class_id_idx ON public.inventories USING btree (resource_class_id);


--
-- Name: resource_provider_aggregates_aggregate_id_idx; Type: INDEX; Schema: public; Owner: postgres
--

CREATE INDEX resource_provider_aggregates_aggregate_id_idx ON public.resource_provider_aggregates USING btree (aggregate_id);


--
-- Name: resource_provider_traits_resource_provider_trait_idx; Type: INDEX; Schema: public; Owner: postgres
--

CREATE INDEX resource_provider_traits_resource_provider_trait_idx ON public.resource_provider_traits USING btree (resource_provider_id, trait_id);


--
-- Name: resource_providers_parent_provider_id_idx; Type: INDEX; Schema: public; Owner: postgres
--

CREATE INDEX resource_providers_parent_provider_id_idx ON public.resource_providers USING btree (parent_provider_id);


--
-- Name: resource_providers_root_provider_id_idx; Type: INDEX; Schema: public; Owner: postgres
--

CREATE INDEX resource_providers_root_provider_id_idx ON public.resource_providers USING btree (root_provider_id);


--
-- Name: consumers consumers_consumer_type_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.consumers
    ADD CONSTRAINT consumers_consumer_type_id_fkey FOREIGN KEY (consumer_type_id) REFERENCES public.consumer_types(id);


--
-- Name: resource_provider_traits resource_provider_traits_resource_provider_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.resource_provider_traits
    ADD CONSTRAINT resource_provider_traits_resource_provider_id_fkey FOREIGN KEY (resource_provider_id) REFERENCES public.resource_providers(id);


--
-- Name: resource_provider_traits resource_provider_traits_trait_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.resource_provider_traits
    ADD CONSTRAINT resource_provider_traits_trait_id_fkey FOREIGN KEY (trait_id) REFERENCES public.traits(id);


--
-- Name: resource_providers resource_providers_parent_provider_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.resource_providers
    ADD CONSTRAINT resource_providers_parent_provider_id_fkey FOREIGN KEY (parent_provider_id) REFERENCES public.resource_providers(id);


--
-- Name: resource_providers resource_providers_root_provider_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.resource_providers
    ADD CONSTRAINT resource_providers_root_provider_id_fkey FOREIGN KEY (root_provider_id) REFERENCES public.resource_providers(id);


--
-- PostgreSQL database dump complete
--

\unrestrict aUMf8jiv8c0yQbXNBLGXrqkjyBCufQaK8LvHUiahsGmhO97gaPepzYL7Fho3UBd

